"""Trackers change no result, need their package, and end with the run."""

import io
import json
from concurrent.futures import Future
from importlib import util
from pathlib import Path

import pytest
from composing import experiment

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.files.open_folders import FolderGoneError, open_folder
from fedexp.parts.tracker import contract, memo, sender
from fedexp.parts.tracker.contract import SendingTracker, Tracker
from fedexp.parts.tracker.mlflow import MLflow
from fedexp.simulation.setup import compatibility


@pytest.mark.parametrize("name", ["mlflow", "tensorboard"])
def test_a_missing_package_is_told_before_data_is_loaded(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fedexp.parts.tracker.contract.find_spec", lambda package: None)
    with pytest.raises(ConfigError) as told:
        compatibility.refuse(experiment(f"tracker={name}"))
    assert str(told.value) == f"tracker={name} needs {name}; pip install 'fedexp[{name}]'"
    assert util.find_spec("fedexp") is not None


def test_a_run_may_be_resumed_with_another_tracker():
    assert "tracker" in roles.role_names(changes_results=False)


def test_none_asks_nothing_and_leaves_nothing(tmp_path: Path):
    tracker = experiment("tracker=none").tracker
    assert tracker == Tracker()
    following = tracker.follow(tmp_path, {}, pytest.fail)
    following.listen()
    following.close(ValueError)
    assert list(tmp_path.iterdir()) == []


def test_a_sender_makes_no_folder_anew(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()
    one = sender.Sender(MLflow(), contract.Order(folder), Future())
    with open_folder(folder):
        one.save_state(round=1)
        folder.rename(tmp_path / "elsewhere")
        folder.mkdir()
        with pytest.raises(FolderGoneError):
            one.save_state(round=2)
        with pytest.raises(FolderGoneError):
            one.send_new(last=True)
    assert not [*folder.iterdir()]


@pytest.mark.parametrize(
    ("package", "answer"),
    [
        ("no_such_package", "needs no_such_package; pip install no_such_package"),
        ("google.cloudx.storage", "needs google.cloudx.storage; pip install google.cloudx.storage"),
        ("", "must name in its class the package that it needs, as package; got nothing"),
    ],
)
def test_a_tracker_of_ones_own_is_told_of_its_own_package(package: str, answer: str):
    kind = type("Mine", (SendingTracker,), {"package": package, "__module__": "mine"})
    with pytest.raises(ConfigError) as told:
        kind().refuse()
    assert str(told.value) == f"tracker=mine.Mine {answer}"


class Exiting(SendingTracker):
    """A tracker that wants to end its process."""

    package = "json"

    def open(self, order: contract.Order, state: memo.SyncState) -> contract.Receiver:
        raise SystemExit(3)


def test_a_tracker_that_exits_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    order, told = {"tracker": {}, "folder": str(tmp_path), "parameters": {}, "tags": {}}, []
    monkeypatch.setattr(sender, "redirect_stdout", lambda: None)
    monkeypatch.setattr(sender, "build", lambda *_: Exiting())
    monkeypatch.setattr(sender, "log_line", told.append)
    monkeypatch.setattr(sender.sys, "stdin", io.StringIO(f"{json.dumps(order)}\nFINISHED\n"))
    assert sender.main() == 1
    assert told == ["nothing is sent: SystemExit: 3"]
