"""Worlds of tiny runs, uploads made up for them, one folding of a round: what the contracts of parts are tried on."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from fedexp.core import part as spec
from fedexp.core.part import option
from fedexp.core.values import Memory, Plan, State, Uploads
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.local_task import make_task
from fedexp.simulation.round import Row, fold, run_round
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_batches
from fedexp.training.loop.trainer import Task
from fedexp.training.workers.pool import WorkerPool

Tiny = Callable[..., dict[str, Any]]
WEIGHTLESS = {
    "pfnm": ("aggregator.s=1e-9",),
    "feddyn": ("aggregator.alpha=0",),
    "qfedavg": ("aggregator.q=0",),
    "fltrust": ("scenario.public_fraction=0.2",),
}  # what rules need, and what keeps them from going elsewhere than agreeing clients
UNIT_STEPS = {"fedmgda"}  # rules whose steps have the length 1 where all agree


def world_of(config: dict[str, Any]) -> World:
    return build_world(spec.build(config), None, WorkerPool())


def rounds_with_rows(world: World) -> Iterator[tuple[State, Row, Uploads]]:
    """The rounds of a run without evaluation; their uploads keep their rows."""
    state = world.initial_state()
    while state.round < world.exp.rounds:
        state, row, sent = run_round(world.exp, world, state)
        yield state, row, sent


def uploads_like(delta: torch.Tensor, owner: list[int] | None = None, examples: np.ndarray | None = None) -> Uploads:
    clients = np.array(owner if owner is not None else range(len(delta)), dtype=np.int64)
    counts = clients * 0 + 20 if examples is None else examples
    ones = clients * 0 + 1.0
    return Uploads(clients, clients * 0, counts, ones, delta, clients * 1.0, clients * 0.5, length=5 * ones)


def agreed_row(rule: World) -> torch.Tensor:
    """An update that a rule obeys if all send it: where the server has one of its own, that."""
    if rule.exp.aggregator.needs_public:
        return context.make_context(rule, 1).public.train(rule.first.flat) - rule.first.flat
    row = torch.randn(rule.layout.size)
    return row / row.norm() if option(rule.exp.aggregator) in UNIT_STEPS else 0.01 * row


def first_round(world: World, number: int = 1) -> Task:
    """What all clients train in the first round, or would if it were another one."""
    ctx = context.make_context(world, number)
    plan: Plan = ctx.plan(np.arange(world.partition.clients))
    batches = tuple(
        draw_batches(world.exp.local, len(shard), ctx.rng("batches", client))
        for client, shard in enumerate(plan.shards)
    )
    start = world.first.flat.expand(len(plan.owner), -1)
    return make_task(world.exp, start, plan, batches, {}, ctx)


def train_first_round(world: World) -> torch.Tensor:
    """What the clients of a first round come to, their last slots if the rule asks, and losses, `[C, W]`."""
    task, width = first_round(world), world.layout.size + world.layout.parameters * world.exp.local.finish_needs_slot
    out = world.first.flat.new_zeros(len(task.batches), width + 2)
    for rows in world.trainer.groups(task, 1):
        out[rows] = world.trainer.run(task, rows)
    return out


def folded(
    world: World, uploads: Uploads, mem: dict[str, Memory] | None = None
) -> tuple[torch.Tensor, dict[str, Memory]]:
    with PendingChecks() as checks:
        models, memory = fold(world.exp, (world.first,), uploads, mem or {}, context.make_context(world, 1), checks)
    return models[0].flat, memory


def demand_same_rounds(ours: World, theirs: World, measures: tuple[str, ...] = ("train_loss", "mb_up")) -> None:
    """Fails unless all rounds of two runs send, come to and measure the same, byte by byte."""
    for (state, row, sent), (other_state, other_row, other_sent) in zip(
        rounds_with_rows(ours), rounds_with_rows(theirs), strict=True
    ):
        assert sent.owner.tolist() == other_sent.owner.tolist()
        assert torch.equal(sent.delta, other_sent.delta)
        assert torch.equal(state.models[0].flat, other_state.models[0].flat)
        assert [row[name] for name in measures] == [other_row[name] for name in measures]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
