"""FLTrust by hand, against attackers, and what the server's own update is."""

import numpy as np
import pytest
import torch
from worlds import Tiny, folded, rounds_with_rows, same, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Jobs
from fedexp.parts.aggregator.fltrust import cosines_with
from fedexp.simulation import context
from fedexp.simulation.context_views import PublicQueries
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility
from fedexp.simulation.work import work
from fedexp.simulation.world import World

PUBLIC = ("aggregator=fltrust", "scenario.public_fraction=0.25")


@pytest.fixture
def served(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose server has an update of 2 along the first entry."""

    def train(_: PublicQueries, row: torch.Tensor) -> torch.Tensor:
        return row.index_add(0, torch.tensor([0]), torch.tensor([2.0]))

    monkeypatch.setattr(PublicQueries, "train", train)
    return world_of(tiny(*PUBLIC))


def step(world: World, *entries: list[float]) -> tuple[list[float], dict[str, float]]:
    """The first two entries of the step for updates whose other entries are zero, and the columns."""
    rows = torch.zeros(len(entries), world.layout.size)
    rows[:, :2] = torch.tensor(entries)
    model, memory = folded(world, uploads_like(rows))
    return (model - world.first.flat)[:2].tolist(), memory["aggregator"]["columns"]


def test_cosines_by_hand():
    rows = torch.tensor([[3.0, 4.0], [-5.0, 0.0], [0.0, 0.0]])
    assert cosines_with(rows, torch.tensor([7.0, 0.0])).tolist() == pytest.approx([0.6, -1, 0])
    assert cosines_with(rows, torch.zeros(2)).tolist() == [0, 0, 0]


def test_by_hand(served: World):
    """Cosines 1, 3/5 and -1 with updates of the lengths 1, 5 and 9: (1 (2, 0) + 3/5 (6/5, 8/5)) / (8/5)."""
    moved, columns = step(served, [1.0, 0.0], [3.0, 4.0], [-9.0, 0.0])
    assert moved == pytest.approx([(2 + 0.72) / 1.6, 0.96 / 1.6], abs=1e-6)
    assert columns == {"dropped": 0, "trusted": 2, "server_norm": 2}


@pytest.mark.law("aggregator=fltrust", "how long the updates are does not matter")
def test_lengths_do_not_matter(served: World):
    long, _ = step(served, [1.0, 0.0], [3.0, 4.0], [-9.0, 0.0])
    short, _ = step(served, [1e-6, 0.0], [3e-3, 4e-3], [-9e-9, 0.0])
    assert short == pytest.approx(long, abs=1e-6)


@pytest.mark.law("aggregator=fltrust", "if all send the server's own update, it is the mean, to the byte")
def test_if_all_are_honest_and_equal_it_is_the_mean(served: World, tiny: Tiny):
    rows = torch.zeros(3, served.layout.size)
    rows[:, 0] = 2.0
    plain = world_of(tiny("scenario.public_fraction=0.25", "aggregator.weighting=uniform"))
    assert torch.equal(folded(served, uploads_like(rows))[0], folded(plain, uploads_like(rows))[0])


@pytest.mark.law("aggregator=fltrust", "updates at a right angle or against the server's move nothing")
def test_whom_nobody_trusts_moves_nothing(served: World, monkeypatch: pytest.MonkeyPatch):
    moved, columns = step(served, [-1.0, 0.0], [0.0, 4.0])
    assert moved == [0, 0]
    assert columns["trusted"] == 0
    monkeypatch.setattr(PublicQueries, "train", lambda _, row: row * torch.nan)
    moved, columns = step(served, [1.0, 0.0])
    assert moved == [0, 0]
    assert columns["server_norm"] is None


@pytest.mark.law("aggregator=fltrust", "the server's update is that of a client that holds the public examples")
def test_the_servers_update_is_that_of_a_client_with_the_public_examples(tiny: Tiny):
    """Of full batches, so that no draw matters; the pace of the round is the clients', here a schedule's."""
    words = ("local.batch_size=full", "local.epochs=3", "schedule=step", "schedule.every=1", "schedule.gamma=0.5")
    for engine in ("loop", "stacked"):
        world = world_of(tiny(*PUBLIC, *words, f"engine={engine}"))
        ctx, one, first = context.make_context(world, 2), np.array([2]), (world.first,)
        jobs = Jobs(one, (world.public_index,), None, None, model=one * 0, begun=one, sent=lambda _, first=first: first)
        client = work(world.exp, world, jobs, {}, ctx)[0].delta[0]
        torch.testing.assert_close(ctx.public.train(world.first.flat) - world.first.flat, client)
        assert len(world.public_index) == 30
        assert not np.intersect1d(world.public_index, world.partition.indices).size


def test_the_servers_length_is_that_of_trainable_entries(tiny: Tiny):
    world = world_of(tiny(*PUBLIC, "model=torch", "model.factory=own_networks:Counting", "engine=loop"))
    update = context.make_context(world, 1).public.train(world.first.flat) - world.first.flat
    assert update[-1].item() == 2  # batches of 20 of its 30 examples
    _, memory = folded(world, uploads_like(torch.ones(2, world.layout.size)))
    norm = torch.linalg.vector_norm(update[:-1], dtype=torch.float64)
    assert memory["aggregator"]["columns"]["server_norm"] == pytest.approx(norm.item(), rel=1e-12)


def test_a_rule_that_counts_classes_counts_the_servers(tiny: Tiny):
    world = world_of(tiny(*PUBLIC, "local=fedlc"))
    ctx = context.make_context(world, 1)
    counts = ctx.clients_data.class_counts(np.array([SERVER]))[0]
    assert counts.tolist() == np.bincount(world.labels[world.public_index], minlength=10).tolist()
    assert ctx.public.train(world.first.flat).isfinite().all()


@pytest.mark.law("aggregator=fltrust", "where four of six clients turn their signs, two are trusted in every round")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_attackers_are_not_trusted(tiny: Tiny, engine: str):
    attack = ("attack=sign_flip", "scenario.malicious=4", "selector=all", "rounds=6", "dataset.train_size=600")
    ends = {}
    for rule in ("fltrust", "fedavg"):
        words = ("scenario.public_fraction=0.2", f"aggregator={rule}", *attack, f"engine={engine}")
        world = world_of(tiny(*words))
        lines = [(state, row) for state, row, _ in rounds_with_rows(world)]
        ends[rule] = float(world.score(lines[-1][0].models[0], world.test).metrics["accuracy"])
        assert rule == "fedavg" or all(row["aggregator.trusted"] == 2 for _, row in lines)
    assert ends["fltrust"] > ends["fedavg"] + 0.2


def test_engines_agree_and_the_same_bytes_come_again(tiny: Tiny):
    ends = []
    for engine in ("loop", "stacked"):
        world = world_of(tiny("algorithm=fltrust", "rounds=3", f"engine={engine}"))
        states = [state for state, *_ in rounds_with_rows(world)]
        again = run_round(world.exp, world, states[1])[0]
        assert torch.equal(again.models[0].flat, states[2].models[0].flat)
        assert same(again.memory["aggregator"], states[2].memory["aggregator"])
        ends.append(states[-1].models[0].flat)
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            (),
            "aggregator=fltrust needs public data of the server, but the server has none; use scenario.public_fraction",
        ),
        (("scenario.public_fraction=0.2", "pacing=buffered"), "compares each update with the server's own of the pres"),
    ],
)
def test_refusals(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny("aggregator=fltrust", *words)))
