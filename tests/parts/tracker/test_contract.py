"""Trackers change no result, need their package, and end with the run."""

from importlib import util
from pathlib import Path

import pytest
from composing import experiment

from fedexp.core.errors import ConfigError
from fedexp.parts.tracker import courier
from fedexp.parts.tracker.mlflow import beside, place, title
from fedexp.parts.tracker.sender import without_password
from fedexp.run import checkpoint
from fedexp.simulation import compatibility


@pytest.mark.parametrize("name", ["mlflow", "tensorboard"])
def test_a_missing_package_is_told_before_data_is_loaded(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fedexp.parts.tracker.contract.find_spec", lambda package: None)
    with pytest.raises(ConfigError) as told:
        compatibility.refuse(experiment(f"tracker={name}"))
    assert str(told.value) == f"tracker={name} needs {name}; pip install 'fedexp[{name}]'"
    assert util.find_spec("fedexp") is not None


def test_a_run_may_be_resumed_with_another_tracker():
    assert "tracker" in checkpoint.FREE


@pytest.mark.parametrize(
    ("error", "status"),
    [(None, "FINISHED"), (ValueError, "FAILED"), (KeyboardInterrupt, "KILLED"), (SystemExit, "FAILED")],
)
def test_how_a_run_ended(error: type[BaseException] | None, status: str):
    assert courier.status(error) == status


def test_a_sender_that_cannot_be_started_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(courier.sys, "executable", str(tmp_path / "nothing"))
    (tmp_path / "metrics.csv").write_text("round,test_loss\n1,0.5\n2,0.25\n")
    messenger = courier.Messenger("mlflow", tmp_path, {}, 1.0)
    messenger.listen()
    messenger.close(None)
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        f"mlflow: cannot be started: [Errno 2] No such file or directory: '{tmp_path / 'nothing'}'",
        "mlflow: rounds 1 to 2 did not arrive",
    ]


def test_a_log_tells_no_password():
    assert without_password("no answer of http://me:secret@host:5000/api, said a@b") == (
        "no answer of http://host:5000/api, said a@b"
    )


def test_where_runs_go_without_a_server():
    run = Path("/home/me/outputs/2026-11-21/10-00-00")
    assert place(None, run) == "sqlite:////home/me/outputs/mlflow.db"
    assert place(None, Path("/home/me/mine")) == "sqlite:////home/me/mlflow.db"
    assert place("http://host:5000", run) == "http://host:5000"
    assert place("sqlite:///my.db", run) == f"sqlite:///{Path.cwd()}/my.db"
    assert beside("sqlite:////home/me/outputs/mlflow.db") == "file:///home/me/outputs/mlartifacts"
    assert beside("http://host:5000") is None
    assert title(run) == "2026-11-21/10-00-00"
    assert title(Path("/home/me/mine")) == "mine"
