"""The global model at clients that never train, worked out a second time; the lines of client_scores.csv."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from worlds import Tiny, world_of

from fedexp.maths import curve_metrics
from fedexp.run.run import run
from fedexp.simulation import build_world
from fedexp.simulation.build_world import load
from fedexp.simulation.measures import client_scores, own_models, participation
from fedexp.simulation.round import run_round

WORDS = ("evaluation.personal_fraction=0.25", "evaluation.unseen_fraction=0.34")


def accuracies(world: Any, row: torch.Tensor, part: Any) -> list[float]:
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).eval()
    network.load_state_dict(world.layout.views(row.clone()), strict=False)
    places = [torch.from_numpy(part.shard(client)) for client in range(part.clients)]
    return [float((network(world.train.inputs(own)).argmax(1) == world.train.y[own]).float().mean()) for own in places]


def test_both_kinds_and_their_difference(tiny: Tiny):
    world = world_of(tiny(*WORDS))
    state = run_round(world.exp, world, world.initial_state())[0]
    told = participation.score_later(world.exp, world, state)()[0]
    seen, unseen = (np.mean(accuracies(world, state.models[0].flat, part)) for part in (world.held_out, world.unseen))
    assert told == pytest.approx(
        dict(zip(participation.columns(world.exp), (seen, unseen, seen - unseen), strict=True))
    )


def test_a_gap_above_0_says_that_those_that_train_fare_better(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    """An accuracy that were an error: less would be better."""
    world = world_of(tiny(*WORDS))
    higher = participation.score_later(world.exp, world, world.initial_state())()[0]
    monkeypatch.setitem(curve_metrics.HIGHER_IS_BETTER, "accuracy", False)
    lower = participation.score_later(world.exp, world, world.initial_state())()[0]
    assert higher["participation_gap"] == higher["participating_accuracy"] - higher["unseen_accuracy"] != 0
    assert lower == {**higher, "participation_gap": -higher["participation_gap"]}


def test_clients_are_measured_on_their_own_test_examples(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    """Six people train; the test data are of people 0 to 3."""

    def with_people(exp: Any, *_: Any) -> tuple[Any, Any]:
        data, told = load(exp)
        subject = torch.arange(len(data.test.y)) % 4
        return replace(data, test=replace(data.test, subject=subject)), told

    monkeypatch.setattr(build_world, "load", with_people)
    words = ("federation=subject", "dataset.subjects=6", "evaluation.own_test=true", "evaluation.unseen_fraction=0.2")
    world = world_of(tiny(*words, "seed=1"))
    state = run_round(world.exp, world, world.initial_state())[0]
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).eval()
    network.load_state_dict(world.layout.views(state.models[0].flat.clone()), strict=False)
    right = (network(world.test.inputs(slice(0, 60))).argmax(1) == world.test.y).float()
    parts = [*(world.held_out.shard(client) for client in range(5)), world.unseen.shard(0)]
    assert sorted(len(part) for part in parts) == [0, 0, 15, 15, 15, 15]
    lines = {line["client"]: line for line in client_scores.score_rows(world.exp, world, state)}
    assert lines.keys() == {client for client in range(6) if len(parts[client])}
    for client, line in lines.items():
        assert line["global"] == pytest.approx(float(right[torch.from_numpy(parts[client])].mean()))
    told = participation.score_later(world.exp, world, state)()[0]
    assert told["participating_accuracy"] == pytest.approx(np.mean([lines[k]["global"] for k in lines if k < 5]))
    assert (told["unseen_accuracy"] is None) == (5 not in lines)
    assert own_models.score_later(world.exp, world, state)()[0]["personal_accuracy"] == told["participating_accuracy"]


def test_no_columns_unless_asked_for(tiny: Tiny):
    world = world_of(tiny(WORDS[0]))
    assert participation.columns(world.exp) == ()
    assert participation.score_later(world.exp, world, world.initial_state())() == ({}, 0.0)


def test_of_many_a_sample_is_measured(tiny: Tiny):
    world = world_of(tiny(*WORDS, "evaluation.personal_clients=1"))
    assert len(participation.measured_unseen(world.exp, world)) == 1


def test_a_run_leaves_columns_and_a_line_for_each_client(tiny: Tiny, tmp_path: Path):
    run(tiny(*WORDS, "evaluation.every=2", "local=personal_layer", "model.hidden=[8]"), tmp_path)
    table = pd.read_csv(tmp_path / "metrics.csv")
    columns = ["participating_accuracy", "unseen_accuracy", "participation_gap"]
    assert table.loc[0, columns].isna().all()
    last = table.iloc[-1]
    lines = pd.read_csv(tmp_path / "client_scores.csv")
    assert list(lines.columns) == ["client", "metric", "examples", "global", "personal", "unseen"]
    assert lines["client"].tolist() == list(range(6))
    assert lines["unseen"].tolist() == [0, 0, 0, 0, 1, 1]
    assert lines["personal"].isna().tolist() == [False] * 4 + [True] * 2
    means = [lines.loc[lines["unseen"] == kind, "global"].to_numpy().mean() for kind in (0, 1)]
    assert last["participating_accuracy"] == pytest.approx(means[0])
    assert last["unseen_accuracy"] == pytest.approx(means[1])
    assert last["personal_accuracy"] == pytest.approx(lines.loc[lines["unseen"] == 0, "personal"].mean())
    assert last["participation_gap"] == pytest.approx(means[0] - means[1])


def test_without_unseen_clients_the_file_has_no_such_column(tiny: Tiny, tmp_path: Path):
    run(tiny(WORDS[0], "rounds=1"), tmp_path)
    assert list(pd.read_csv(tmp_path / "client_scores.csv").columns) == [
        "client",
        "metric",
        "examples",
        "global",
        "personal",
    ]
