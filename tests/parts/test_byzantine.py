"""A round that has too few rows for the Byzantine clients that a rule is asked to bear."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.values import Columns
from fedexp.parts.aggregator.krum import Krum
from fedexp.parts.byzantine import Tolerant
from fedexp.run.run import run
from fedexp.simulation.build_world import build_world
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility
from fedexp.training.workers.pool import WorkerPool

Tiny = Callable[..., dict[str, Any]]
MOST = {  # the largest f that 1, 2, 3, 4, 5, 6, 7, 11 rows allow
    "krum": [-1, -1, 0, 0, 1, 1, 2, 4],
    "multi_krum": [-1, -1, 0, 0, 1, 1, 2, 4],
    "trimmed_mean": [0, 0, 1, 1, 2, 2, 3, 5],
    "bulyan": [-1, -1, 0, 0, 0, 0, 1, 2],
    "zeno": [0, 1, 2, 3, 4, 5, 6, 10],
}


@pytest.mark.parametrize("name", MOST)
def test_the_largest_number_that_a_rule_bears(tiny: Tiny, name: str):
    rule = spec.build(tiny(f"aggregator={name}")).aggregator
    assert [max(rule.max_byzantine(rows), -1) for rows in (1, 2, 3, 4, 5, 6, 7, 11)] == MOST[name]


def test_what_is_reported(caplog: pytest.LogCaptureFixture):
    rule = Tolerant(byzantine=3)
    assert rule.effective_byzantine(4, 1) == (3, {"byzantine": 3, "violated": 0})
    assert rule.effective_byzantine(0, 1) == (None, {"byzantine": None, "violated": 0})
    assert caplog.text == ""
    assert rule.effective_byzantine(2, 7) == (1, {"byzantine": 1, "violated": 1})
    assert caplog.messages == ["round 7: Tolerant needs f < n, but f = 3 of n = 2 updates; it goes on with f = 1"]
    assert Tolerant(byzantine=3, on_violation="skip").effective_byzantine(2, 8)[0] is None
    assert caplog.messages[1].endswith("f = 3 of n = 2 updates; the model stays as it is")
    with pytest.raises(
        RunError, match=r"round 9: Tolerant needs f < n.*; lower byzantine, ask more clients, or set on_v"
    ):
        Tolerant(byzantine=3, on_violation="error").effective_byzantine(2, 9)


@pytest.mark.parametrize(
    ("words", "participants", "used"),
    [
        (["aggregator=krum"], 5, 1),
        (["aggregator=krum", "aggregator.on_violation=skip"], 5, None),
        (["aggregator=multi_krum"], 6, 1),
        (["aggregator=bulyan"], 6, 0),
        (["aggregator=zeno"], 2, 1),
        (["aggregator=trimmed_mean"], 3, 1),
    ],
)
def test_every_round_says_so_once(
    tiny: Tiny, words: list[str], participants: int, used: int | None, caplog: pytest.LogCaptureFixture
):
    exp = spec.build(tiny("scenario.malicious=3", f"scenario.participants={participants}", *words))
    world = build_world(exp, None, WorkerPool())
    with caplog.at_level(logging.WARNING):
        state, row, _ = run_round(exp, world, world.initial_state())
    assert row["aggregator.byzantine"] == used
    assert row["aggregator.violated"] == 1
    assert len(caplog.messages) == 1
    assert type(exp.aggregator).__name__ in caplog.text
    assert torch.equal(state.models[0].flat, world.first.flat) == (used is None)


@pytest.mark.parametrize(
    "words",
    [
        ("aggregator=krum", "scenario.participants=2"),
        ("aggregator=krum", "pacing=buffered", "pacing.buffer=2", "fleet=simulated"),
        ("aggregator=bulyan", "scenario.participants=5", "pre_aggregation=bucketing", "pre_aggregation.size=3"),
    ],
)
def test_so_few_uploads_that_the_model_would_never_move_are_refused(tiny: Tiny, words: tuple[str, ...]):
    said = "which 2 uploads a round do not allow even for f = 0, so that the model would never move; let more"
    with pytest.raises(ConfigError, match=said):
        compatibility.refuse(spec.build(tiny("scenario.malicious=1", *words)))
    compatibility.refuse(spec.build(tiny("scenario.malicious=1", *words, "aggregator=fedavg")))


@pytest.mark.parametrize("words", [*(f"aggregator={name}" for name in MOST), "pre_aggregation=nearest_neighbours"])
def test_every_rule_steps_aside_or_ends_the_run(tiny: Tiny, words: str, caplog: pytest.LogCaptureFixture):
    """Nine Byzantine of three is more than any rule bears; lowered to what it bears, all of them go on."""
    role = words.partition("=")[0]
    for answer, goes_on in (("skip", False), ("clamp", True)):
        exp = spec.build(tiny(words, f"{role}.byzantine=9", f"{role}.on_violation={answer}"))
        world = build_world(exp, None, WorkerPool())
        state, row, _ = run_round(exp, world, world.initial_state())
        assert torch.equal(state.models[0].flat, world.first.flat) != goes_on
        assert row[f"{role}.violated"] == 1
        assert (row[f"{role}.byzantine"] is not None) == goes_on
    assert len(caplog.messages) == 2
    assert all(message.startswith("round 1: ") and "f = 9 of n = 3" in message for message in caplog.messages)
    exp = spec.build(tiny(words, f"{role}.byzantine=9", f"{role}.on_violation=error"))
    world = build_world(exp, None, WorkerPool())
    with pytest.raises(RunError, match=r"^round 1: \w+ needs .* but f = 9 of n = 3 updates; lower byzantine.*clamp$"):
        run_round(exp, world, world.initial_state())


def test_mixing_that_steps_aside_leaves_the_model(tiny: Tiny):
    words = ("pre_aggregation=nearest_neighbours", "pre_aggregation.on_violation=skip", "scenario.malicious=2")
    exp = spec.build(tiny(*words))
    world = build_world(exp, None, WorkerPool())
    state, row, _ = run_round(exp, world, world.initial_state())
    assert torch.equal(state.models[0].flat, world.first.flat)
    assert row["pre_aggregation.violated"] == 1


class Late(Krum):
    """Bears every round before the third."""

    def effective_byzantine(self, rows: int, number: int) -> tuple[int | None, Columns]:
        return (0, {}) if number < 3 else super().effective_byzantine(rows, number)


def test_error_ends_the_run_and_the_round_before_it_gets_its_line(tiny: Tiny):
    exp = spec.build(tiny("rounds=9"))
    exp = replace(exp, aggregator=Late(byzantine=9, on_violation="error"))
    world, lived = build_world(exp, None, WorkerPool()), []
    with pytest.raises(RunError, match=r"Late needs 2f \+ 2 < n, but f = 9 of n = 3 updates; lower byzantine"):
        lived.extend(row["round"] for _, row, _ in run_rounds(exp, world, world.initial_state()))
    assert lived == [1, 2]


def test_error_is_one_line(tiny: Tiny, tmp_path: Path):
    config = tiny("aggregator=krum", "scenario.malicious=1", "aggregator.on_violation=error")
    with pytest.raises(RunError, match=r"^round 1: Krum needs 2f \+ 2 < n, but f = 1 of n = 3 updates.*clamp$"):
        run(config, tmp_path)


def test_more_malicious_clients_than_clients(tiny: Tiny):
    compatibility.refuse(spec.build(tiny("scenario.malicious=6")))
    with pytest.raises(ConfigError, match=r"scenario.malicious must be at most the number of clients, 6, got 7"):
        compatibility.refuse(spec.build(tiny("scenario.malicious=7")))
