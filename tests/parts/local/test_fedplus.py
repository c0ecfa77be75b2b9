"""Fed+'s clients: the special cases, three rounds by hand, who keeps what."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.client_rows import ClientRows
from fedexp.core.values import SERVER, State, Trained, Uploads
from fedexp.simulation import context
from fedexp.simulation.round import run_round
from fedexp.simulation.world import World
from fedexp.training.client.batches import Batches, draw_batches
from fedexp.training.loop.trainer import Task

Tiny = Callable[..., dict[str, Any]]
ALL = ("selector=all", "federation=dirichlet", "federation.alpha=1", "local.batch_size=7")
SHARED = ("evaluation.personal_fraction=0",)


def lived(world: World, rounds: int) -> list[State]:
    states = [world.initial_state()]
    for _ in range(rounds):
        states.append(run_round(world.exp, world, states[-1])[0])
    return states


def own(state: State) -> dict[int, torch.Tensor]:
    """The clients' own models by their numbers."""
    held = state.memory["local"]
    return dict(zip(held["owner"].tolist(), held["rows"], strict=True))


@pytest.mark.law("local=fedplus", "theta = 1 and mixing = 1 is FedAvg with equal weights, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_theta_and_mixing_one_are_fedavg_bit_by_bit(tiny: Tiny, engine: str):
    plain = world_of(tiny(*ALL, "aggregator.weighting=uniform", f"engine={engine}"))
    ours = world_of(
        tiny(
            *ALL, "local=fedplus", "local.theta=1", "local.mixing=1", "aggregator.weighting=uniform", f"engine={engine}"
        )
    )
    for one, other in zip(lived(plain, 3), lived(ours, 3), strict=True):
        assert torch.equal(one.models[0].flat, other.models[0].flat)


@pytest.mark.law("algorithm=fedplus", "theta = 1, mixing = 1 and the mean as centre is FedAvg with equal weights")
def test_with_the_mean_of_all_as_centre_too(tiny: Tiny):
    """The centre adds models where FedAvg adds their deltas: the same up to rounding."""
    plain = world_of(tiny(*ALL, "aggregator.weighting=uniform"))
    words = ("local.penalty=l2_squared", "local.theta=1", "local.mixing=1")
    ours = world_of(tiny("algorithm=fedplus", *ALL, *SHARED, *words))
    for one, other in zip(lived(plain, 3), lived(ours, 3), strict=True):
        torch.testing.assert_close(one.models[0].flat, other.models[0].flat, atol=1e-6, rtol=0)


@pytest.mark.law("local=fedplus", "theta = 1 and mixing = 0 is every client's own training, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_theta_one_and_mixing_zero_is_every_clients_own_training_bit_by_bit(tiny: Tiny, engine: str):
    ours = world_of(tiny("algorithm=fedplus", *ALL, *SHARED, "local.theta=1", f"engine={engine}"))
    alone = world_of(tiny(*ALL, f"engine={engine}"))
    rows = alone.first.flat.repeat(6, 1)
    for number, state in enumerate(lived(ours, 3)[1:], start=1):
        ctx = context.make_context(alone, number)
        plan = ctx.plan(np.arange(6))
        batches = tuple(batches_of(alone, len(shard), number, client) for client, shard in enumerate(plan.shards))
        task = Task(rows, rows[:, : ctx.layout.parameters], plan, batches, 0, number)
        groups = alone.trainer.groups(task, 1)
        trained = rows.clone()
        for group in groups:
            trained[torch.from_numpy(group)] = alone.trainer.run(task, group)[:, :-2]
        rows = trained
        assert own(state)
        assert all(torch.equal(rows[client], row) for client, row in own(state).items())


def batches_of(world: World, examples: int, number: int, client: int) -> Batches:
    return draw_batches(world.exp.local, examples, context.make_context(world, number).rng("batches", client))


@pytest.mark.law(
    "algorithm=fedplus", "mu = 0: the server sends the geometric median, the median or the mean of the clients' models"
)
@pytest.mark.parametrize(("penalty", "rule"), [("l2", "geometric_median"), ("l1", "median"), ("l2_squared", "fedavg")])
def test_without_smoothing_the_centre_is_the_rule_of_that_name(tiny: Tiny, penalty: str, rule: str):
    """mu = 0, everybody takes part: what the server sends next is the median of what the clients keep."""
    words = (f"local.penalty={penalty}", "aggregator.mu=0", "aggregator.tolerance=1e-12", "aggregator.iterations=5000")
    world = world_of(tiny("algorithm=fedplus", *ALL[:3], *SHARED, *words, "scenario.clients=5"))
    plain = spec.build(tiny(f"aggregator={rule}", "++aggregator.weighting=uniform")).aggregator
    for state in lived(world, 3)[1:]:
        delta = torch.stack(list(own(state).values())) - world.first.flat
        nobody, count = np.zeros(5, dtype=np.int64), np.ones(5, dtype=np.int64)
        uploads = Uploads(np.arange(5), nobody, count, count * 1.0, delta, nobody * 1.0, nobody * 1.0)
        after, _ = plain.combine(world.first, uploads, {}, context.make_context(world, state.round))
        torch.testing.assert_close(state.models[0].flat, after.flat, atol=1e-6, rtol=0)


@pytest.mark.law(
    "local=fedplus", "mu = 0 and mixing = 0: clients start from their own models and are drawn to them, to the byte"
)
@pytest.mark.parametrize("penalty", ["l2_squared", "l2", "l1"])
def test_mu_zero_is_no_federation(tiny: Tiny, penalty: str):
    """Whatever the server sends, clients begin and are drawn to their own models, bit by bit."""
    world = world_of(tiny("algorithm=fedplus", "local.mu=0", f"local.penalty={penalty}"))
    rule, ctx, owner = world.exp.local, context.make_context(world, 2), np.array([0, 3])
    rows = torch.randn(2, world.layout.size)
    memory = ClientRows.load({}, world.layout.size, rows).with_rows(owner, rows).save()
    start, anchor = rule.begin(torch.randn(2, world.layout.size), owner, memory, ctx)
    assert torch.equal(start, rows)
    assert torch.equal(anchor, rows[:, : ctx.layout.parameters])


def test_theta_follows_from_alpha_and_the_step(tiny: Tiny):
    rule = spec.build(tiny("local=fedplus", "local.alpha=2", "local.lr=0.25")).local
    assert rule.step_weight == 2 / 3
    assert spec.build(tiny("local=fedplus", "local.theta=0.5")).local.step_weight == 0.5


@pytest.mark.parametrize(("mix", "lr"), [("step", 1.0), ("step", 0.5), ("epoch", 0.5)])
def test_three_rounds_by_hand(tiny: Tiny, mix: str, lr: float):
    """Clients 0 and 1 minimise (w - 1)^2 / 2 and (w - 4)^2 / 2: the verbs and plain numbers go three rounds.

    alpha = 1 gives theta = 1 / (1 + lr); mu = 1 with the squared norm gives z = centre + (w_k - centre) / 2.
    """
    settings = ("local.alpha=1", "local.mu=1", f"local.lr={lr}", "local.penalty=l2_squared", f"local.mix={mix}")
    world = world_of(tiny("local=fedplus", *settings))
    rule, parameters, goals, owner = (
        world.exp.local,
        world.layout.parameters,
        torch.tensor([[1.0], [4.0]]),
        np.arange(2),
    )
    centre, theta = world.first.flat * 0, 1 / (1 + lr)
    memory = ClientRows.load({}, len(centre), centre).with_rows(owner, torch.zeros(2, len(centre))).save()
    told, middle = [0.0, 0.0], 0.0
    for number in range(1, 4):
        received, ctx = centre.expand(2, -1), context.make_context(world, number)
        start, anchor = rule.begin(received, owner, memory, ctx)
        rows = start.clone()
        w = rows[:, :parameters]
        for due in rule.pulled_steps(4, 2):
            rule.update(w, rule.direction(w - goals, w, anchor), torch.zeros(0), torch.tensor(1.0), None)
            if due:
                rule.pull(w, anchor, None)
        delta, memory = rule.finish(Trained(owner, np.full(2, 4), received, start, rows), memory, ctx)
        centre = centre + delta.mean(dim=0)
        told = [by_hand(w, (middle + w) / 2, goal, (theta, lr, mix)) for w, goal in zip(told, (1, 4), strict=True)]
        middle = sum(told) / 2
        assert memory["rows"][:, 0].tolist() == pytest.approx(told)
        assert centre[0].item() == pytest.approx(middle)
    if lr == 1:  # a step lands on the goal: w = (goal + z) / 2; 1/2, 2 -> 15/16, 45/16 -> 77/64, 203/64
        assert told == [77 / 64, 203 / 64]


def by_hand(w: float, z: float, goal: float, settings: tuple[float, float, str]) -> float:
    """Four steps in two epochs."""
    theta, lr, mix = settings
    for step in range(4):
        w = w - lr * (w - goal)
        w = theta * w + (1 - theta) * z if mix == "step" or step % 2 == 1 else w
    return w


@pytest.mark.law("local=fedplus", "a client that is not asked keeps its model, to the byte")
def test_who_is_not_asked_keeps_its_model(tiny: Tiny):
    world = world_of(tiny("algorithm=fedplus", "scenario.participants=2"))
    states, seen = lived(world, 4), 0
    for before, after in pairwise(states[1:]):
        asked = world.exp.selector.choose({}, context.make_context(world, after.round))[0].owner.tolist()
        for client, row in own(before).items():
            kept = torch.equal(row, own(after)[client])
            assert kept == (client not in asked)
            seen += kept
        assert set(own(after)) == set(own(before)) | set(asked)
    assert seen


def test_the_first_model_is_everybodys_first(tiny: Tiny):
    """A client asked for the first time in a late round has w_k = the first model; a row of the server has none."""
    world = world_of(tiny("local=fedplus", "local.mixing=0.25", "local.penalty=l2_squared", "local.mu=0.3"))
    received = world.first.flat + 1
    start, anchor = world.exp.local.begin(
        received.expand(2, -1), np.array([3, SERVER]), {}, context.make_context(world, 9)
    )
    torch.testing.assert_close(start[0], world.first.flat + 0.25)
    torch.testing.assert_close(anchor[0], world.first.flat[: world.layout.parameters] + 0.5)
    assert torch.equal(start[1], received)


@pytest.mark.law("aggregator=fedplus_centre", "what the server remembers of a client is what the client keeps")
def test_the_server_knows_what_the_clients_keep(tiny: Tiny):
    world = world_of(tiny("algorithm=fedplus"))
    state = lived(world, 3)[-1]
    heard = state.memory["aggregator"]["0"]
    assert heard["owner"].tolist() == state.memory["local"]["owner"].tolist()
    torch.testing.assert_close(heard["rows"], state.memory["local"]["rows"])


def test_the_last_model_survives_a_training_that_is_not_finite(tiny: Tiny):
    world = world_of(tiny("algorithm=fedplus", "selector=all"))
    state = lived(world, 1)[-1]
    with torch.no_grad():
        world.train.x[world.partition.shard(2)[0]] = torch.inf
    after, row, _ = run_round(world.exp, world, state)
    assert row["aggregator.dropped"] == 1
    assert [client for client, model in own(after).items() if torch.equal(model, own(state)[client])] == [2]
