"""The models that clients use themselves: which, on what, and what is told of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core.values import Layout, State, Weights
from fedexp.run.state import checkpoint
from fedexp.run.tables import TIMINGS
from fedexp.simulation import context
from fedexp.simulation.measures import own_models as personal
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]
HALF = "evaluation.personal_fraction=0.5"


def accuracy(world: World, row: torch.Tensor, index: np.ndarray) -> float:
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).eval()
    network.load_state_dict(world.layout.views(row.clone()), strict=False)
    place = torch.from_numpy(index)
    return float((network(world.train.inputs(place)).argmax(dim=1) == world.train.y[place]).float().mean())


def told(world: World, state: State) -> dict[str, Any]:
    return personal.score_later(world.exp, world, state)()[0]


def test_over_clients_by_hand():
    """0, 1/2 and 1: the variance is 1/6, and (3/2)**2 / (3 * 5/4) is 3/5."""
    found = personal.over_clients(np.array([0.5, 1.0, 0.0]), higher=True)
    assert found == pytest.approx((0.5, 0.0, 1.0, (1 / 6) ** 0.5, 0.6))
    assert personal.over_clients(np.array([0.5, 1.0, 0.0]), higher=False)[1:3] == (1.0, 0.0)


def spread(each: list[float]) -> dict[str, float]:
    """The columns of the clients' accuracies."""
    names = ("personal_accuracy", *(f"personal_{name}" for name in ("worst_decile", "best_decile", "std", "jain")))
    return dict(zip(names, personal.over_clients(np.array(each), higher=True), strict=True))


def test_held_out_examples_are_never_trained_on(tiny: Tiny):
    world = world_of(tiny(HALF, "federation=dirichlet", "federation.alpha=1"))
    assert len(np.intersect1d(world.partition.indices, world.held_out.indices)) == 0
    assert sorted([*world.partition.indices, *world.held_out.indices]) == list(range(120))
    assert context.make_context(world, 1).sizes.tolist() == world.partition.sizes.tolist()


def test_without_own_models_it_is_the_global_one_everywhere(tiny: Tiny):
    world = world_of(tiny(HALF))
    state = run_round(world.exp, world, world.initial_state())[0]
    each = [accuracy(world, state.models[0].flat, world.held_out.shard(client)) for client in range(6)]
    assert told(world, state) == pytest.approx(spread(each))


def test_own_models_where_there_are_some(tiny: Tiny):
    world = world_of(tiny("algorithm=fedplus", HALF, "local.epochs=5", "federation=dirichlet", "federation.alpha=0.5"))
    state = run_round(world.exp, world, world.initial_state())[0]
    held = state.memory["local"]
    own = dict(zip(held["owner"].tolist(), held["rows"], strict=True))
    able = np.flatnonzero(world.held_out.sizes).tolist()
    each = [accuracy(world, own.get(client, state.models[0].flat), world.held_out.shard(client)) for client in able]
    assert 0 < len(own) < 6
    assert told(world, state) == pytest.approx(spread(each))


@pytest.mark.law("algorithm=fine_tuned_fedavg", "the global models are FedAvg's, to the byte")
@pytest.mark.law(
    "algorithm=fine_tuned_fedavg", "without epochs of tuning every client uses FedAvg's model, to the byte"
)
def test_tuning_leaves_the_global_path_as_it_is(tiny: Tiny):
    tuned, untuned, plain = (
        world_of(tiny(*words, "evaluation.personal_fraction=0.2"))
        for words in (
            ("algorithm=fine_tuned_fedavg",),
            ("algorithm=fine_tuned_fedavg", "evaluation.fine_tune_epochs=null"),
            ("algorithm=fedavg",),
        )
    )
    lines = [[state for state, *_ in run_rounds(world.exp, world, world.initial_state())] for world in (tuned, plain)]
    for ours, theirs in zip(*lines, strict=True):
        assert torch.equal(ours.models[0].flat, theirs.models[0].flat)
        everybody = theirs.models[0].flat.expand(6, -1)
        assert torch.equal(personal.personal_models(untuned.exp, untuned, ours, np.arange(6)), everybody)
        assert not torch.equal(personal.personal_models(tuned.exp, tuned, ours, np.arange(6)), everybody)


def test_own_buffers_belong_to_the_own_model(tiny: Tiny):
    words = ("model=complex_cnn", "model.buffers=local", "dataset.shape=[1,8,8]")
    world = world_of(tiny(HALF, *words))
    state = run_round(world.exp, world, world.initial_state())[0]
    held, parameters = state.memory["personal"], world.layout.parameters
    owner = int(held["owner"][0])
    (row,) = personal.personal_models(world.exp, world, state, np.array([owner]))
    assert torch.equal(row[:parameters], state.models[0].flat[:parameters])
    assert torch.equal(row[parameters:], held["rows"][0])


def test_malicious_clients_are_left_out_and_of_many_a_sample_is_measured(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    world = world_of(tiny(HALF, "scenario.malicious=2"))
    assert personal.measured_clients(world.exp, world).tolist() == sorted(set(range(6)) - set(world.malicious.tolist()))
    few = world_of(tiny(HALF, "evaluation.personal_clients=2"))
    assert len(personal.measured_clients(few.exp, few)) == 2
    state = world.initial_state()
    whole = told(world, state)
    monkeypatch.setattr(personal, "FLOATS", 1)  # a job a client
    assert told(world, state) == whole


def test_what_malicious_clients_hold_out_is_not_poisoned(tiny: Tiny):
    clean, poisoned = (world_of(tiny(HALF, "scenario.malicious=6", *more)) for more in ((), ("attack=label_flip",)))
    held = torch.from_numpy(clean.held_out.indices)
    assert torch.equal(clean.train.y[held], poisoned.train.y[held])
    assert not torch.equal(clean.train.y, poisoned.train.y)


def test_columns_only_where_asked_for_and_only_in_evaluated_rounds(tiny: Tiny):
    world = world_of(tiny(HALF, "rounds=3", "evaluation.every=2"))
    rows = [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]
    assert [row["personal_accuracy"] is None for row in rows] == [True, False, False]
    plain = world_of(tiny())
    assert (
        not {"personal_accuracy", "personal_worst_decile"}
        & next(run_rounds(plain.exp, plain, plain.initial_state()))[1].keys()
    )


@pytest.mark.parametrize("words", ["algorithm=fedplus", "algorithm=scaffold", "local=personal_layer"])
def test_a_stop_in_the_middle_changes_nothing(tiny: Tiny, words: str, tmp_path: Path):
    """What clients keep goes to disk after round 3 and comes back."""
    plain = tiny(words, HALF, "rounds=6")
    world = world_of(plain)
    whole = list(run_rounds(world.exp, world, world.initial_state()))
    checkpoint.save(tmp_path, whole[2][0], plain, {"name": "loop", "reason": ""})
    loaded = checkpoint.load(tmp_path, plain, torch.device("cpu"))
    assert loaded is not None
    rest = list(run_rounds(world.exp, world, loaded.state))
    for (one, row, _), (other, line, _) in zip(whole[3:], rest, strict=True):
        assert torch.equal(one.models[0].flat, other.models[0].flat)
        assert {name: row[name] for name in row.keys() - TIMINGS} == {name: line[name] for name in row.keys() - TIMINGS}


def test_a_global_model_of_another_width_is_used_as_it_is(tiny: Tiny):
    world = world_of(tiny("aggregator=pfnm", "model.hidden=[3]", HALF))
    wide = Layout(world.layout.names, ((5, 8), (5,), (10, 5), (10,)), world.layout.trainable)
    state = replace(world.initial_state(), models=(Weights(torch.zeros(wide.size), wide),))
    assert 0 <= told(world, state)["personal_accuracy"] <= 1
