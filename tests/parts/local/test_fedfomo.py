"""FedFomo by hand, where nothing moves, and what is sent for it."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from worlds import Tiny, rounds_with_rows, same, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.client_rows import ClientRows
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Jobs, Layout, State, Weights
from fedexp.parts.context import Context
from fedexp.parts.local.fedfomo import FedFomo, first_order_weights
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility
from fedexp.simulation.setup.data_split import split_data
from fedexp.simulation.work import work
from fedexp.simulation.world import World

LAYOUT = Layout(("w", "statistic"), ((2,), (1,)), 1)
ALL = ("selector=all", "federation=dirichlet", "rounds=3")


@pytest.mark.law("local=fedfomo", "a model that does no better gets no weight, and the weights of the others sum to 1")
def test_weights_by_hand():
    """Gains of 1, 3 and none at distances 2, 3 and 1: 1/2 and 1, of which the sum is 3/2."""
    weights = first_order_weights(np.array([4.0]), np.array([[3.0, 1.0, 5.0]]), np.array([[2.0, 3.0, 1.0]]))
    assert weights == pytest.approx(np.array([[1 / 3, 2 / 3, 0]]))
    nothing = first_order_weights(np.array([4.0, np.nan]), np.array([[4.0, np.nan], [1.0, 1.0]]), np.ones((2, 2)))
    assert not nothing.any()
    assert not first_order_weights(np.ones(1), np.zeros((1, 1)), np.zeros((1, 1))).any()
    broken = first_order_weights(np.array([4.0, np.inf]), np.array([[np.inf, 3.0], [1.0, np.inf]]), np.ones((2, 2)))
    assert broken.tolist() == [[0.0, 1.0], [0.0, 0.0]]


def context_of(losses: dict[int, list[float]]) -> Context:
    """A context in which each client has these losses of models by the number in their first entry."""

    def judge(rows: torch.Tensor, holder: np.ndarray, owner: np.ndarray) -> np.ndarray:  # noqa: ARG001
        return np.array([[losses[client][int(row[0])] for row in rows] for client in owner.tolist()])

    first = Weights(torch.tensor([9.0, 9.0, 9.0]), LAYOUT)
    data = SimpleNamespace(judge=judge)
    return cast(Context, SimpleNamespace(clients_data=data, layout=LAYOUT, models=(first,)))


def test_a_start_by_hand():
    """Models (0, 0), (1, 0) and (2, 0) of clients 1, 4 and 6; client 1 likes the others, client 4 its own best."""
    rows = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 5.0], [2.0, 0.0, 3.0]])
    mine = ClientRows(torch.tensor([1, 4, 6]), rows)
    memory = mine.save() | {"sent": mine.save()}
    ctx = context_of({1: [5.0, 4.0, 1.0], 4: [3.0, 2.0, 2.5]})  # gains 1 at distance 1 and 4 at distance 2
    received = torch.full((3, 3), 9.0)
    start, anchor = FedFomo(epochs=1).begin(received, np.array([4, 0, 1]), memory, ctx)
    torch.testing.assert_close(start, torch.tensor([[1.0, 0, 5], [9, 9, 9], [5 / 3, 0, (5 + 2 * 3) / 3]]))
    assert torch.equal(anchor, start[:, :2])


def test_what_others_are_sent_is_what_reached_the_server():
    """A client's own copy stays its own: an attack, or a codec, changes what others get."""
    rule, ctx = FedFomo(epochs=1), context_of({1: [5.0, 4.0], 4: [2.0, 1.0]})
    uploads = uploads_like(torch.tensor([[-8.0, -9.0, 0.0], [0.0, 0.0, 0.0], [torch.inf, 0, 0]]), [4, SERVER, 1])
    mine = ClientRows(torch.tensor([1, 4]), torch.tensor([[0.0, 0.0, 1.0], [0.0, 7.0, 7.0]]))
    memory = rule.receive(uploads, mine.save(), ctx)
    assert memory["sent"]["owner"].tolist() == [4]
    assert memory["sent"]["rows"].tolist() == [[1.0, 0.0, 9.0]]
    start, _ = rule.begin(torch.full((2, 3), 9.0), np.array([1, 4]), memory, ctx)
    assert start.tolist() == [[1.0, 0.0, 9.0], [0.0, 7.0, 7.0]]


def alone(world: World) -> torch.Tensor:
    """What all clients come to, each of which goes on from what it had."""
    everyone, rows = np.arange(world.partition.clients), world.first.flat.expand(world.partition.clients, -1)
    for number in range(1, world.exp.rounds + 1):
        ctx = context.make_context(world, number)
        plan, begun = ctx.plan(everyone), everyone * 0 + number
        models = tuple(Weights(row, world.layout) for row in rows)
        sent = lambda _, models=models: models  # noqa: E731
        jobs = Jobs(plan.owner, plan.shards, None, None, model=everyone, begun=begun, sent=sent)
        rows = work(world.exp, world, jobs, {}, ctx)[1]["local"]["rows"]
    return rows


@pytest.mark.law("local=fedfomo", "where no weight is above 0 every client trains alone, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_where_nobody_is_better_every_client_trains_alone_to_the_byte(
    tiny: Tiny, engine: str, monkeypatch: pytest.MonkeyPatch
):
    words = ("algorithm=fedfomo", *ALL, f"engine={engine}")
    *_, (moved, *_) = rounds_with_rows(world_of(tiny(*words)))
    nobody = lambda own_loss, losses, distance: np.zeros_like(losses)  # noqa: E731
    monkeypatch.setattr("fedexp.parts.local.fedfomo.first_order_weights", nobody)
    world = world_of(tiny(*words))
    *_, (state, *_) = rounds_with_rows(world)
    rows = personal_models(world.exp, world, state, np.arange(6))
    assert torch.equal(rows, alone(world))
    assert torch.equal(rows, state.memory["local"]["rows"])
    assert not torch.allclose(moved.memory["local"]["rows"], rows, atol=1e-3)


@pytest.mark.law(
    "local=fedfomo", "a client's start moves if and only if another's model does better on what it holds out"
)
def test_it_starts_from_models_that_do_better_on_what_is_held_out(tiny: Tiny):
    world = world_of(tiny("algorithm=fedfomo", *ALL))
    *_, (state, *_) = rounds_with_rows(world)
    ctx, memory = context.make_context(world, 4, state.models), state.memory["local"]
    everyone = np.arange(6)
    start, _ = world.exp.local.begin(state.models[0].flat.expand(6, -1), everyone, memory, ctx)
    before = np.array([mean_loss(world, row, client) for client, row in enumerate(memory["rows"])])
    after = np.array([mean_loss(world, row, client) for client, row in enumerate(start)])
    better = [
        any(
            mean_loss(world, row, client) < before[client]
            for other, row in enumerate(memory["rows"])
            if other != client
        )
        for client in range(6)
    ]
    assert sum(better) > 0
    unmoved = np.array([torch.equal(*pair) for pair in zip(start, memory["rows"], strict=True)])
    assert unmoved.tolist() == [not is_better for is_better in better]
    assert after.mean() < before.mean()


def mean_loss(world: World, row: torch.Tensor, client: int) -> float:
    index = torch.from_numpy(world.judging.shard(client))
    logits = world.scorer.logits(Weights(row, world.layout), world.train.inputs(index))
    return float(torch.nn.functional.cross_entropy(logits, world.train.y[index]))


def test_what_is_held_out_is_nobody_elses(tiny: Tiny):
    words = ("evaluation.personal_fraction=0.25", "federation=dirichlet", "local.judging_fraction=0.25")
    exp = spec.build(tiny("algorithm=fedfomo", *words))
    split, _ = split_data(exp, exp.dataset.load(exp.data_dir, exp.seed))
    parts = [split.partition, split.held_out, split.judging]
    assert np.array_equal(np.sort(np.concatenate([part.indices for part in parts])), np.arange(120))
    plain = spec.build(tiny("evaluation.personal_fraction=0.25", "federation=dirichlet"))
    whole, _ = split_data(plain, plain.dataset.load(plain.data_dir, plain.seed))
    assert np.array_equal(whole.held_out.indices, split.held_out.indices)
    assert (split.judging.sizes == np.maximum(1, whole.partition.sizes // 4) * (whole.partition.sizes > 1)).all()
    assert whole.judging.indices.size == 0


def test_judging_takes_the_time_of_the_examples_that_are_held_out(tiny: Tiny):
    """Five of 20 examples, for each of the models of five others, at a third of the time of training on them."""
    words = ("fleet=simulated", "fleet.link=own", "fleet.jitter_std=0", "fleet.speed_low=10", "fleet.speed_high=10")
    words = (*words, "fleet.bandwidth_mbit=1e9", "evaluation.personal_fraction=0", "local.judging_fraction=0.25")
    rows = rounds_with_rows(world_of(tiny("algorithm=fedfomo", "selector=all", "rounds=2", *words)))
    first, second = (row["sim_s"] for _, row, _ in rows)
    assert first == pytest.approx(15 / 10)  # nobody was heard of before
    assert second - first == pytest.approx(15 / 10 + 5 * 5 / 3 / 10, rel=1e-3)


@pytest.mark.law("local=fedfomo", "every model of another client that is sent is counted as bytes down")
def test_models_that_are_sent_are_counted(tiny: Tiny):
    """Each of three who were heard of before is sent the models of the others; else the global one."""
    world = world_of(tiny("algorithm=fedfomo", "rounds=4", "evaluation.personal_fraction=0"))
    size, heard = world.layout.size * 4 / 1e6, set()
    for _, row, sent in rounds_with_rows(world):
        owners = set(sent.owner.tolist())
        models = sum(len(heard - {client}) if client in heard else 1 for client in owners)
        assert row["mb_down"] == pytest.approx(models * size)
        assert row["mb_up"] == pytest.approx(3 * size)
        heard |= owners
    assert len(heard) > 3


def test_engines_agree_and_a_checkpoint_holds_the_models(tiny: Tiny, tmp_path: Path):
    ends: list[State] = []
    for engine in ("loop", "stacked"):
        world = world_of(tiny("algorithm=fedfomo", "rounds=4", f"engine={engine}"))
        states = [state for state, *_ in rounds_with_rows(world)]
        checkpoint.save(tmp_path, states[1], {}, {"name": engine, "reason": ""})
        saved = checkpoint.load(tmp_path, {}, torch.device("cpu"))
        assert saved is not None
        following = run_round(world.exp, world, saved.state)[0]
        assert same(following.memory["local"], states[2].memory["local"])
        ends.append(states[-1])
    rows = [state.memory["local"]["rows"] for state in ends]
    torch.testing.assert_close(*rows, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("aggregator=secure_mean",),
            "shows nobody the row of a single client, but local=fedfomo has the server send",
        ),
        (
            ("aggregator=fedamp",),
            "aggregator=fedamp starts each client from a model of its own, but local=fedfomo has the server send",
        ),
        (
            ("clustering=ifca",),
            "clustering=ifca is about who shares a model, but local=fedfomo has the server send",
        ),
        (
            ("pacing=buffered",),
            "pacing=buffered takes uploads that began with older models, but local=fedfomo has the server send",
        ),
        (
            ("scenario.training=local",),
            "averages nothing, but local=fedfomo has the server send",
        ),
        (
            ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3"),
            "privacy=dp_sgd covers what is trained, but local=fedfomo has the server send",
        ),
        (("local.judging_fraction=0",), r"judging_fraction must be a number in \(0, 1\)"),
    ],
)
def test_refusals(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny("algorithm=fedfomo", *words)))


def test_malicious_clients_with_copies_hold_nothing_out(tiny: Tiny):
    world = world_of(tiny("algorithm=fedfomo", "scenario.malicious=2", "scenario.malicious_hold_data=false"))
    honest = np.setdiff1d(np.arange(6), world.malicious)
    assert not world.judging.sizes[world.malicious].any()
    assert (world.judging.sizes[honest] > 0).all()
    assert not np.intersect1d(world.judging.indices, world.partition.indices).size
