"""A tracker's password reaches the process that sends, and no file, log or console."""

import os
from pathlib import Path

import pytest
from tracking import FAST

from fedexp import cli
from fedexp.files.url_credentials import ADDRESS_VARIABLE
from fedexp.parts.tracker.contract import Order
from fedexp.parts.tracker.memo import SyncState
from fedexp.parts.tracker.mlflow import MLflow, MlflowRun

PASSWORD = "hunter2"
URI = f"http://me:{PASSWORD}@127.0.0.1:9"
QUICK = (*FAST, "rounds=1", "tracker=mlflow", "tracker.patience_s=0.01")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ADDRESS_VARIABLE, "")
    monkeypatch.delenv(ADDRESS_VARIABLE)


def demand_unknown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    told = [path for path in place.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert not told


@pytest.mark.parametrize("typed", [True, False])
def test_a_run_tells_nobody(typed: bool, monkeypatch, capsys):
    if not typed:
        monkeypatch.setenv(ADDRESS_VARIABLE, URI)
    words = [f"tracker.uri={URI}"] if typed else []
    assert cli.main(["run", *QUICK, *words, "hydra.run.dir=run"]) == 0
    demand_unknown(Path("run"), capsys)
    assert os.environ[ADDRESS_VARIABLE] == URI, "those who send ask here"


def test_typed_again_when_a_run_is_resumed(capsys):
    assert cli.main(["run", *FAST, "rounds=1", "hydra.run.dir=run"]) == 0
    words = ["tracker=mlflow", f"tracker.uri={URI}", "tracker.patience_s=0.01"]
    assert cli.main(["resume", "run", *words]) == 0
    demand_unknown(Path("run"), capsys)
    assert os.environ[ADDRESS_VARIABLE] == URI


def test_a_sweep_tells_nobody(capsys):
    assert cli.main(["run", "-m", *QUICK, f"tracker.uri={URI}", "hydra.sweep.dir=many"]) == 0
    demand_unknown(Path("many"), capsys)


@pytest.mark.parametrize("words", [["run"], ["run", "-m", "seed=0,1"]])
def test_a_slash_in_it_is_refused_before_anything_is_saved(words, capsys):
    assert cli.main([*words, *QUICK, f"tracker.uri=http://me:ab/{PASSWORD}@127.0.0.1:9"]) == 2
    demand_unknown(Path(), capsys)
    assert not [*Path().iterdir()]


def test_a_mistake_beside_it_is_told_without_it(capsys):
    assert cli.main(["run", *QUICK, f"tracker.urii={URI}"]) == 2
    demand_unknown(Path(), capsys)
    assert cli.main(["run", *QUICK, f"tracker.uri={URI}", "+tracker.x=1"]) == 2
    demand_unknown(Path(), capsys)


def test_who_sends_has_the_whole_address(tmp_path: Path, monkeypatch):
    asked = []
    monkeypatch.setenv(ADDRESS_VARIABLE, URI)
    monkeypatch.setattr("mlflow.tracking.MlflowClient", lambda tracking_uri: asked.append(tracking_uri))
    for uri in ("http://127.0.0.1:9", URI):
        assert MlflowRun(MLflow(uri=uri), Order(tmp_path), SyncState()).uri == "http://127.0.0.1:9"
    MlflowRun(MLflow(uri="http://127.0.0.1:8"), Order(tmp_path), SyncState())
    assert asked == [URI, URI, "http://127.0.0.1:8"]
