"""How a trial is scored."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from composing import tiny as composed_tiny

from fedexp.core.errors import RunError
from fedexp.run.run import complete
from fedexp.search import trial
from fedexp.search.study import MethodTrials


class KilledError(BaseException):
    """Ends a process at once."""


def test_a_round_that_was_saved_is_watched_whatever_is_damaged_behind_it(tmp_path: Path):
    words = ("rounds=3", "checkpoint_s=0", "evaluation.validation=true", "pictures=false")
    config, watched = composed_tiny(*words), []

    def stop(row: dict[str, Any]) -> None:
        watched.append((row["round"], row["validation_accuracy"]))
        if len(watched) == 2:
            raise KilledError

    with pytest.raises(KilledError):
        complete(config, tmp_path, stop)
    with (tmp_path / "metrics.csv").open("ab") as file:
        file.write(b"3,\x00\x00garbage\n")
    trial.score(config, tmp_path, lambda row: watched.append((row["round"], row["validation_accuracy"])))
    assert [number for number, _ in watched] == [1, 2, 2, 3]
    assert watched[1] == watched[2]


def test_rounds_before_the_last_that_was_reported_decide_nothing_again():
    """The process was killed between the look at round 3 and its saving; the decision is that of round 3."""
    reports: list[int] = []
    begun = SimpleNamespace(
        number=0,
        report=lambda _, number: reports.append(number),
        should_prune=lambda: True,
        intermediate_values={1: 0.5, 3: 0.4},
    )
    watch = trial._watch(cast(MethodTrials, SimpleNamespace(trials=lambda: [begun])), begun)
    for number in (1, 2):
        watch({"round": number, "validation_accuracy": 0.5})
    for number in (3, 4):
        with pytest.raises(trial.PrunedError):
            watch({"round": number, "validation_accuracy": 0.4})
    assert reports == [4]


def test_a_run_that_explodes_at_its_end_does_not_score_by_an_earlier_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lines = ["round,validation_loss,validation_perplexity", "1,3.0,20.0", "2,2.0,8.0"]
    monkeypatch.setattr(trial, "complete", lambda *_: (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n"))
    assert trial.score({}, tmp_path, None) == 8
    lines.append("3,,")
    with pytest.raises(RunError, match="the last round has no validation perplexity, or an infinite one"):
        trial.score({}, tmp_path, None)
