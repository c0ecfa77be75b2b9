"""A GPU's streams, on the pretend device: who waits for whom, and what may be read and freed when."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pretend_device as pretend
import pytest
import torch
from composing import tiny
from on_device import IMAGES, measured
from pandas.testing import assert_frame_equal
from worlds import world_of

from fedexp.core.values import Weights
from fedexp.scoring.side_stream import SideStreamScorer
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World

SEVERAL = (
    "rounds=4",
    "evaluation.client_losses=exact",
    "evaluation.validation=true",
    "dataset.test_size=300",
    "engine.memory_mb=1",
)


def world() -> World:
    config = tiny("dataset.test_size=300")
    return world_of({**config, "engine": {**config["engine"], "device": "pretend"}})


def test_streams_that_do_not_wait_for_each_other_are_found():
    with pretend.Races():
        x, other = torch.ones(3, device="pretend"), pretend.Stream()
        with pytest.raises(RuntimeError, match="another stream"), pretend.stream(other):
            x.sum()
        other.wait_stream(pretend.current_stream())
        with pretend.stream(other):
            later = (x + 1).to("cpu", non_blocking=True)
        with pytest.raises(RuntimeError, match="another stream"):
            x.zero_()
        assert later.isnan().all(), "nobody has waited for the copy"
        other.synchronize()
        x.zero_()
    assert later.tolist() == [2, 2, 2]


def test_a_stage_lasts_until_the_device_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    noted: list[Any] = []
    record = pretend.Event.record
    monkeypatch.setattr(pretend.Event, "record", lambda event: (noted.append(event), record(event)))
    with pretend.Races():  # an event is asked for its time only when the host has waited for it
        measured(tiny("rounds=1", "evaluation.test=false"), tmp_path, "pretend")
    assert len(noted) >= 5  # at the beginning of the round, and at the end of each stage


@pytest.mark.parametrize(
    "words",
    [
        ("engine=loop",),
        ("engine=stacked", "model=simple_cnn", IMAGES),
        ("engine=loop", "evaluation.metrics=[accuracy,auroc,brier,ece]"),
    ],
    ids=["loop", "cnn", "probabilities"],
)
def test_a_model_is_evaluated_on_a_stream_of_its_own(tmp_path: Path, words: tuple[str, ...]):
    config = tiny(*words, *SEVERAL)
    with pretend.Races() as races:
        there = measured(config, tmp_path / "there", "pretend")
    assert len(races.streams) >= 2
    assert_frame_equal(measured(config, tmp_path / "here", "cpu"), there, atol=2e-4, rtol=1e-3)


def test_an_event_that_the_host_is_past_is_not_waited_for():
    x, event, side = torch.ones(3, device="pretend"), pretend.Event(), pretend.Stream()
    event.record()
    with pretend.stream(side):
        aside = pretend.Event()
        aside.record()
    before = pretend.counts().get("sync", 0)
    x.tolist()  # waits for the first stream, and not for the other
    for waited_for, waits in ((event, 1), (aside, 2), (aside, 2)):
        waited_for.synchronize()
        assert pretend.counts()["sync"] - before == waits


@pytest.mark.parametrize(
    ("words", "most"), [((), 4), (("evaluation.test=false",), 3)], ids=["evaluated", "only trained"]
)
def test_how_often_a_round_waits_for_the_device(words: tuple[str, ...], most: int):
    """For the losses, for whether uploads are finite and whether models are; for scores on a stream of their own."""
    config = tiny("rounds=4", "scenario.clients=20", "scenario.participants=10", "engine=stacked", *words)
    here, waits = world_of({**config, "engine": {**config["engine"], "device": "pretend"}}), []
    for _ in run_rounds(here.exp, here, here.initial_state()):
        waits.append(pretend.counts().get("sync", 0))
    assert np.diff(waits)[0] == most


def test_nobody_waits_while_scores_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    begin, waits = SideStreamScorer.begin, []

    def watched(*args: Any) -> Any:
        before = pretend.counts().get("sync", 0)
        asked = begin(*args)
        waits.append(pretend.counts().get("sync", 0) - before)
        return asked

    monkeypatch.setattr(SideStreamScorer, "begin", watched)
    metrics = "evaluation.metrics=[accuracy,top5,macro_f1,balanced_accuracy,class_recall,auroc,auprc,brier,ece]"
    measured(tiny("rounds=3", "dataset.test_size=300", metrics), tmp_path, "pretend")
    assert waits == [0, 0, 0]


def test_a_model_lives_until_its_scores_are_there():
    here = world()
    weights = Weights(here.first.flat.clone(), here.layout)
    alive, asked = weakref.ref(weights.flat), here.score_later(weights, here.test)
    del weights
    gc.collect()
    assert alive() is not None
    asked.result()
    del asked
    gc.collect()
    assert alive() is None
