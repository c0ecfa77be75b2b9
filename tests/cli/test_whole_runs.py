"""Whole runs from the command line: the folder, the sweep, the failures, torchrun."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tracking
from processes import Command, typed

from fedexp.cli import main

FAST = (*tracking.FAST, "rounds=1")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_from_anywhere(tmp_path: Path):
    told = typed(tmp_path, "run", *FAST, "pictures=true")
    assert told.returncode == 0, told.stderr
    assert told.stderr == "fedexp: pictures is given 2 times: pictures=true, the last one, counts\n"
    latest = tmp_path / "outputs" / "latest"
    assert latest.is_symlink()
    names = {path.name for path in latest.iterdir()}
    assert names >= {".hydra", "fedexp.log", "state.pt", "curves.png", "federation.csv", "federation.png"}
    assert names >= {"metrics.csv", "clients.csv", "summary.json"}
    assert f"folder          {latest.resolve().relative_to(tmp_path)}" in told.stdout
    assert "final accuracy" in told.stdout
    assert "round 1/1" in (latest / "fedexp.log").read_text()


def test_two_runs_of_one_second_do_not_share_a_folder(tmp_path: Path):
    running = [Command(tmp_path, "run", *FAST) for _ in range(3)]
    assert [command.wait() for command in running] == [0, 0, 0]
    assert len(list((tmp_path / "outputs").glob("*/*/metrics.csv"))) - len(["latest"]) in (2, 3)
    assert len({path.resolve() for path in (tmp_path / "outputs").glob("*/*/summary.json")}) == 3


def test_a_sweep_numbers_its_points(tmp_path: Path):
    assert main(["run", "-m", *FAST, "seed=0,1"]) == 0
    points = sorted((tmp_path / "outputs" / "multirun").glob("*/*/*/summary.json"))
    assert [path.parent.name for path in points] == ["0", "1"]
    splits = {json.loads(path.read_text())["split_sha256"] for path in points}
    assert len(splits) == 2


def test_a_folder_that_holds_a_run_is_not_written_again(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["run", *FAST, "hydra.run.dir=mine"]) == 0
    before = (tmp_path / "mine" / "metrics.csv").read_bytes()
    capsys.readouterr()
    assert main(["run", *FAST, "hydra.run.dir=mine"]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert (tmp_path / "mine" / "metrics.csv").read_bytes() == before


def test_a_run_that_fails_says_why_and_exits_with_one(capsys: pytest.CaptureFixture[str]):
    words = ("server_optimizer=momentum", "server_optimizer.lr=1e39")
    assert main(["run", *FAST, *words]) == 1
    assert capsys.readouterr().err.startswith("fedexp: the global model is not finite after round 1; ")


def test_under_torchrun_one_process_owns_the_folder(tmp_path: Path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*command, "-m", "fedexp.cli", "run", *FAST, "scenario.participants=4", "rounds=2"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert main(["run", *FAST, "scenario.participants=4", "rounds=2", "hydra.run.dir=alone"]) == 0
    runs = list((tmp_path / "outputs").glob("2*/*/summary.json"))
    assert len(runs) == 1
    shared, own = (json.loads(path.read_text()) for path in (runs[0], tmp_path / "alone" / "summary.json"))
    assert shared["engine"]["workers"] == 2
    assert shared["loss_auc"] == own["loss_auc"]
