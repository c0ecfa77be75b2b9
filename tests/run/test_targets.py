"""Whole runs on labels, numbers and tokens: workers, resume, report, verify and compare know their metrics."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from own_targets import told
from run_folders import write_config
from worlds import Tiny

from fedexp import cli
from fedexp.run.run import complete, run

MAIN = {"labels": "macro_f1", "numbers": "rmse", "tokens": "accuracy"}
SHOWN = {"labels": 0.5, "numbers": 2.5, "tokens": 0.3}


@pytest.fixture
def configs(tiny: Tiny) -> Any:
    def made(targets: str, *words: str) -> dict[str, Any]:
        listed = (f"evaluation.roa=[{SHOWN[targets]}]", "evaluation.toa=[]")
        return told(tiny("rounds=3", "checkpoint_s=0", "local.lr=0.3", *listed, *words), targets)

    return made


def noted(config: dict[str, Any], folder: Path) -> None:
    """Runs, with the config noted in the folder as the command line does."""
    write_config(folder, {**config, "data_dir": str(config["data_dir"])})
    run(config, folder)


@pytest.mark.parametrize("targets", MAIN)
def test_two_methods_from_the_run_to_the_comparison(
    configs: Any, targets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    main = MAIN[targets]
    for seed in (0, 1):
        words = (f"seed={seed}", "evaluation.personal_fraction=0.2")
        noted(configs(targets, *words), tmp_path / f"plain/{seed}")
        noted(configs(targets, "local=prox", "local.lr=0.3", *words), tmp_path / f"prox/{seed}")
    table = pd.read_csv("prox/0/metrics.csv")
    assert table[f"test_{main}"].notna().to_numpy().all()
    assert table[[f"personal_{main}", "personal_jain", "personal_std"]].notna().to_numpy().all()
    summary = json.loads(Path("plain/0/summary.json").read_text())
    assert summary["roa"] == {str(SHOWN[targets]): summary["roa"][str(SHOWN[targets])]}
    assert cli.main(["compare", "plain", "--against", "prox", "--unequal", "epochs"]) == 0
    told = capsys.readouterr().out
    assert f"test_{main}" in told
    assert f"(--measures test_{main})" in told
    assert cli.main(["verify", "plain/0", "--all", "--trust-modules", "own_targets"]) == 0, capsys.readouterr().out


def test_the_report_is_about_the_main_metric(configs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    noted(configs("numbers"), tmp_path / "plain")
    assert cli.main(["report", "plain", "--out", "report.md"]) == 0
    assert "final RMSE" in Path("report.md").read_text()
    assert list(Path().rglob("*learning_traffic.png"))


def test_nothing_is_told_of_thresholds_that_nobody_named_for_a_metric_without_a_scale(
    configs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    noted(configs("numbers", "evaluation.roa=null", "evaluation.toa=null"), tmp_path / "plain")
    summary = json.loads(Path("plain/summary.json").read_text())
    assert summary["roa"] == summary["toa"] == {}
    assert cli.main(["report", "plain", "--out", "report.md"]) == 0
    assert not re.search(r"[RT]oA@\d", Path("report.md").read_text())


@pytest.mark.parametrize("targets", MAIN)
def test_workers_and_a_resume_change_nothing(configs: Any, targets: str, tmp_path: Path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(configs(targets), whole)
    run(configs(targets, "engine.workers=2"), tmp_path / "two")
    assert (tmp_path / "two/digests.csv").read_text() == (whole / "digests.csv").read_text()
    run(configs(targets, "keep_states=1"), parts)
    shutil.copy(next(iter(sorted((parts / "states").iterdir()))), parts / "state.pt")
    (parts / "summary.json").unlink()
    complete(configs(targets, "keep_states=1"), parts)
    assert (parts / "digests.csv").read_text() == (whole / "digests.csv").read_text()
    columns = [pd.read_csv(place / "metrics.csv").filter(like="test_") for place in (whole, parts)]
    assert columns[0].equals(columns[1])
