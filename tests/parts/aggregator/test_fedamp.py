"""FedAMP by hand, where it is training alone, and what a client uses."""

from math import exp
from pathlib import Path

import numpy as np
import pytest
import torch
from worlds import Tiny, folded, rounds_with_rows, same, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.client_rows import ClientRows
from fedexp.core.errors import ConfigError
from fedexp.core.values import Jobs, Layout, Memory, Weights
from fedexp.parts.aggregator.fedamp import FedAMP
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility
from fedexp.simulation.work import work
from fedexp.simulation.world import World

LAYOUT = Layout(("w", "statistic"), ((2,), (1,)), 1)
GLOBAL = Weights(torch.tensor([9.0, 9.0, 9.0]), LAYOUT)
ROWS = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 5.0], [0.0, 2.0, 3.0]])  # of clients 1, 4 and 6; the last is a buffer
ALL = ("selector=all", "rounds=3", "federation=dirichlet", "evaluation.personal_fraction=0.2")


def kept(rows: torch.Tensor, owner: list[int]) -> Memory:
    return ClientRows(torch.tensor(owner), rows).save()


def test_starts_by_hand():
    """Squared distances 1, 4 and 5; alpha / sigma = 1/4."""
    rule = FedAMP(alpha=0.5, sigma=2)
    starts = rule.dispatch(GLOBAL, np.array([4, 0, 1]), kept(ROWS, [1, 4, 6]))
    near, far, across = exp(-1 / 2) / 4, exp(-4 / 2) / 4, exp(-5 / 2) / 4
    first = [near, 2 * far, 1 + 4 * near + 2 * far]
    second = [1 - near - across, 2 * across, 5 - 4 * near - 2 * across]
    torch.testing.assert_close(starts, torch.tensor([second, [9.0, 9.0, 9.0], first]))


@pytest.mark.law(
    "aggregator=fedamp", "a client's start is a step down the gradient of the attraction between the models"
)
def test_a_start_is_a_step_down_the_gradient_of_the_attraction():
    w = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    square = (w[0] - w[1:]).square().sum(dim=1)
    (slope,) = torch.autograd.grad((1 - (-square / 0.7).exp()).sum(), w)
    layout = Layout(("w",), ((2,),), 1)
    rows = w.detach()
    start = FedAMP(alpha=0.3, sigma=0.7).dispatch(Weights(rows[0], layout), np.array([0]), kept(rows, [0, 1, 2, 3]))
    torch.testing.assert_close(start[0], rows[0] - 0.3 / 2 * slope[0])


def test_two_rounds_by_hand(tiny: Tiny):
    world = world_of(tiny("algorithm=fedamp", "aggregator.alpha=0.5", "aggregator.sigma=2"))
    rows, first = torch.zeros(2, world.layout.size), world.first.flat
    rows[0, 0], rows[1, 0] = 1.0, -1.0
    model, memory = folded(world, uploads_like(rows, [1, 3]))
    torch.testing.assert_close(model, first)
    assert memory["aggregator"]["columns"] == {"dropped": 0, "heard": 2, "own_weight": None}
    pull = exp(-4 / 2) / 4
    model, memory = folded(world, uploads_like(rows[:1], [3]), memory)
    last = first.clone()
    last[0] += -1 + 2 * pull + 1  # the mixture that it was sent, and what it sends
    torch.testing.assert_close(memory["aggregator"]["0"]["rows"][1], last)
    torch.testing.assert_close(model, first + (rows[0] + last - first) / 2)
    assert memory["aggregator"]["columns"]["own_weight"] == pytest.approx(1 - pull)


def alone(world: World) -> torch.Tensor:
    """What all clients come to, each of which goes on from what it had."""
    everyone, rows = np.arange(world.partition.clients), world.first.flat.expand(world.partition.clients, -1)
    for number in range(1, world.exp.rounds + 1):
        ctx = context.make_context(world, number)
        plan, begun = ctx.plan(everyone), everyone * 0 + number
        models = tuple(Weights(row, world.layout) for row in rows)
        sent = lambda _, models=models: models  # noqa: E731
        jobs = Jobs(plan.owner, plan.shards, None, None, model=everyone, begun=begun, sent=sent)
        rows = rows + work(world.exp, world, jobs, {}, ctx)[0].delta
    return rows


@pytest.mark.law("aggregator=fedamp", "alpha = 0 is every client training alone, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_a_step_every_client_trains_alone_to_the_byte(tiny: Tiny, engine: str):
    words, ends = (*ALL, f"engine={engine}"), []
    for alpha in (0, 1):
        world = world_of(tiny("algorithm=fedamp", "local=sgd", *words, f"aggregator.alpha={alpha}"))
        *_, (state, *_) = rounds_with_rows(world)
        ends.append(personal_models(world.exp, world, state, np.arange(6)))
    expected = alone(world_of(tiny(*words)))
    assert torch.equal(ends[0], expected)
    assert not torch.allclose(ends[1], expected, atol=1e-3)


@pytest.mark.law(
    "aggregator=fedamp", "a client uses what it trained last, to the byte, and the global model if it never did"
)
def test_a_client_uses_what_it_trained_last(tiny: Tiny):
    world = world_of(tiny("algorithm=fedamp", "rounds=3"))
    before = world.initial_state()
    for state, _, sent in rounds_with_rows(world):
        memory = before.memory.get("aggregator", {}).get("0", {})
        trained = world.exp.aggregator.dispatch(before.models[0], sent.owner, memory) + sent.delta
        assert torch.equal(personal_models(world.exp, world, state, sent.owner), trained)
        before = state
    stranger = np.setdiff1d(np.arange(6), before.memory["aggregator"]["0"]["owner"].numpy())
    rows = personal_models(world.exp, world, before, stranger)
    assert torch.equal(rows, before.models[0].flat.expand(len(stranger), -1))


def test_engines_agree_and_a_checkpoint_holds_the_models(tiny: Tiny, tmp_path: Path):
    ends = []
    for engine in ("loop", "stacked"):
        world = world_of(tiny("algorithm=fedamp", "rounds=4", f"engine={engine}"))
        states = [state for state, *_ in rounds_with_rows(world)]
        checkpoint.save(tmp_path, states[1], {}, {"name": engine, "reason": ""})
        saved = checkpoint.load(tmp_path, {}, torch.device("cpu"))
        assert saved is not None
        following = run_round(world.exp, world, saved.state)[0]
        assert same(following.memory["aggregator"], states[2].memory["aggregator"])
        ends.append(states[-1].memory["aggregator"]["0"]["rows"])
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("server_optimizer=momentum",),
            "server_optimizer=momentum moves the global model, but aggregator=fedamp star",
        ),
        (
            ("selector=oort",),
            "selector=oort compares the clients' losses under one global model, but aggregator=fedamp",
        ),
        (("audit=canaries", "audit.score=uploads"), "compares what is sent with gradients of one global model"),
        (
            ("pacing=buffered",),
            "aggregator=fedamp adds what each client sends to the mixture of models that it was sent",
        ),
        (("clustering=ifca",), "aggregator=fedamp has one global model for all clients that it never heard of"),
        (("aggregator.sigma=0",), "sigma must be a number > 0"),
    ],
)
def test_refusals(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny("algorithm=fedamp", *words)))
