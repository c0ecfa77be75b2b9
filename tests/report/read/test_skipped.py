"""Rounds after which the model is what it was before."""

import json
from pathlib import Path

import pandas as pd
import pytest

from fedexp import cli
from fedexp.report.read import skipped
from fedexp.report.read.runs import read


def lines(*digests: str) -> list[dict[str, str]]:
    return [{"round": str(number), "digest": text} for number, text in enumerate(digests, 1)]


def test_the_digest_of_a_round_that_changed_nothing_is_that_of_the_one_before():
    metrics = pd.DataFrame({"round": [1, 2, 3, 4], "participants": [2, 2, 2, 2]})
    assert skipped.skipped_rounds(metrics, lines("a", "b", "b", "b")) == [3, 4]
    assert skipped.skipped_rounds(metrics, lines("a", "b", "a", "c")) == []


def test_the_table_tells_of_the_first_round_and_where_there_are_no_digests():
    metrics = pd.DataFrame(
        {
            "round": [1, 2, 3, 4, 5],
            "participants": [0, 2, 4, 4, 4],
            "fleet.late": [0, 1, 1, 0, 0],
            "fleet.dropped_out": [0, 1, 1, 0, 0],
            "aggregator.dropped": [0, 0, 2, 1, 0],
            "pre_aggregation.violated": [0, 0, 0, 0, 1],
            "pre_aggregation.byzantine": [1, 1, 1, 1, None],
        }
    )
    assert skipped.skipped_rounds(metrics, []) == [1, 2, 3, 5]
    assert skipped.skipped_rounds(metrics, lines("a", "b", "c", "d", "e")) == [1]
    counts = {reason: rounds.nonzero()[0].tolist() for reason, rounds in skipped.reasons(metrics).items()}
    assert counts == {"no update arrived": [0, 1], "no update was finite": [2], "too few updates for a rule": [4]}


def test_a_run_its_report_and_its_check_say_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["rounds=4", "scenario.participants=4", "aggregator=trimmed_mean", "aggregator.byzantine=1"]
    words += ["aggregator.on_violation=skip", "fleet=simulated", "fleet.dropout=0.5", "pictures=false"]
    assert cli.main(["run", *words, "evaluation.validation=true", "hydra.run.dir=run"]) == 0
    said = capsys.readouterr()
    summary = json.loads(Path("run/summary.json").read_text())
    run = read(Path("run"))
    assert run is not None
    rounds = skipped.of_run(run)
    assert 0 < len(rounds) < 4, "the seed has both"
    assert summary["skipped_rounds"] == len(rounds)
    assert summary["validation_examples"] == 143
    assert "skipped  " in said.out
    assert f"in {len(rounds)} rounds the model stayed as it was" in said.out
    assert cli.main(["report", "run", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith(f"trimmed_mean: in {len(rounds)} of 4 rounds of 1 run(s) the model stayed as it was (run: ")
    assert "too few updates for a rule in" in note
    page = Path("run/report.html").read_text()
    assert note in page
    assert "10 % of the training examples for validation" in page
    assert cli.main(["verify", "run", "--rounds", "1"]) == 0
    summary["skipped_rounds"] += 1
    Path("run/summary.json").write_text(json.dumps(summary))
    assert cli.main(["verify", "run", "--rounds", "1"]) == 1
    assert f"says skipped_rounds {len(rounds) + 1}, but it comes to {len(rounds)}" in capsys.readouterr().err
