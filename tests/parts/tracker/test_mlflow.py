"""Against a real MLflow: its server, which is killed and started again, and its database without one."""

import os
import shutil
import socket
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from processes import Command
from tracking import FAST, PATIENT, PROGRESS, Server, ask, rounds_of, run, said, start_and_kill, wait_until

from fedexp.cli import main
from fedexp.config.trust import remember_address
from fedexp.core.values import State, Uploads
from fedexp.parts.tracker import memo
from fedexp.parts.tracker.mlflow import MLflow, artifact_location, destination, resolve_uri, run_title
from fedexp.run.logbook import Logbook
from fedexp.simulation.round import Row

pytestmark = pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed")  # importing takes 2 s


def run_id(folder: Path) -> str:
    return memo.load(folder, "mlflow").run


def test_the_trials_of_a_search_share_a_database(tmp_path: Path):
    trial = tmp_path / "mine" / "all" / "0" / "seed=0"
    assert resolve_uri(None, trial) == f"sqlite:///{trial.parent / 'mlflow.db'}"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "search.yaml").touch()
    assert resolve_uri(None, trial) == f"sqlite:///{tmp_path / 'mine' / 'mlflow.db'}"


def test_a_run_on_a_server(server: Server):
    words = ("tracker=mlflow", f"tracker.uri={server.uri}", "tracker.experiment=mine", "evaluation.roa=[0.5,0.9]")
    folder = run(*words, "rounds=3", "pictures=true")
    own = f"run_uuid = '{run_id(folder)}'"
    steps = ask(server.database, f"select step, value from metrics where key = 'round' and {own}")
    assert steps == [(1, 1.0), (2, 2.0), (3, 3.0)]
    parameters = dict(ask(server.database, f"select key, value from params where {own}"))
    assert parameters["scenario.participants"] == "10"
    assert parameters["aggregator"] == "fedavg"
    assert parameters["evaluation.roa"] == "[0.5, 0.9]"
    assert not [name for name in parameters if name.endswith("_target_")]
    tags = dict(ask(server.database, f"select key, value from tags where {own}"))
    assert tags["mlflow.runName"] == "run"
    assert tags.keys() >= {"versions.fedexp", "versions.torch", "device", "engine.workers"}
    assert ask(server.database, f"select status, name from runs where {own}") == [("FINISHED", "run")]
    files = {path.name for path in (server.folder / "files").rglob("*") if run_id(folder) in str(path)}
    assert files >= {"summary.json", "metrics.csv", "curves.png", "config.yaml", "overrides.yaml"}
    assert len(ask(server.database, f"select value from metrics where key = 'summary/final_accuracy' and {own}")) == 1
    assert len(said(folder, "mlflow")) == 1


def test_the_server_is_killed_in_the_middle_of_a_run(server: Server, monkeypatch: pytest.MonkeyPatch):
    record = Logbook.record

    def killing(logbook: Logbook, state: State, row: Row, sent: Uploads) -> None:
        record(logbook, state, row, sent)
        if state.round == 3:
            wait_until(lambda: memo.load(logbook.folder, "mlflow").round == 3)
            server.kill()

    monkeypatch.setattr(Logbook, "record", killing)
    folder = run("tracker=mlflow", f"tracker.uri={server.uri}", "rounds=9", folder="stopped")
    own = f"and run_uuid = '{run_id(folder)}'"
    told = said(folder, "mlflow")
    assert len(told) == 3
    assert told[1].startswith("mlflow: the run goes on without: MlflowException: ")
    assert told[2] == (
        f"mlflow: rounds 4 to 9 and the files did not arrive; fedexp resume {folder} sends what is missing"
    )
    server.start()
    assert main(["resume", str(folder)]) == 0
    assert rounds_of(server.database, f"test_loss' {own} and key != '") == list(range(1, 10))
    assert ask(server.database, f"select status from runs where run_uuid = '{run_id(folder)}'") == [("FINISHED",)]
    assert len(said(folder, "mlflow")) == 3


def test_a_server_that_never_answers_holds_up_nothing():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        words = ("tracker=mlflow", f"tracker.uri=http://127.0.0.1:{mute.getsockname()[1]}", "tracker.patience_s=1")
        begun = time.monotonic()
        folder = run(*words, "rounds=2")
    assert time.monotonic() - begun < 10
    told = [line for line in said(folder, "mlflow") if "goes on without" not in line]  # it gives up after a second, too
    assert told == [
        "mlflow: no answer within tracker.patience_s=1",
        f"mlflow: rounds 1 to 2 and the files did not arrive; fedexp resume {folder} sends what is missing",
    ]


def test_without_a_server_a_killed_run_has_every_round_once(database: Path, tmp_path: Path):
    folder = start_and_kill(
        tmp_path / "outputs" / "run", *FAST, PATIENT, "tracker=mlflow", "rounds=60", "checkpoint_s=0"
    )
    with memo.lock_tracker(folder, 10):  # what the run had started has gone with it
        before = memo.load(folder, "mlflow")
    assert 0 < before.round < 60
    memo.save(
        folder, memo.SyncState("mlflow", before.token, before.began_ms)
    )  # as if the last words had not been written
    assert main(["resume", str(folder)]) == 0
    assert run_id(folder) == before.run
    assert rounds_of(database) == rounds_of(database, "host_s") == list(range(1, 61))
    assert ask(database, "select status from runs") == [("FINISHED",)]


def test_points_of_a_sweep_that_run_at_once_are_children_of_one_run(database: Path, tmp_path: Path):
    sweep = tmp_path / "outputs" / "multirun" / "today"
    sweep.mkdir(parents=True)
    (sweep / "multirun.yaml").write_text(yaml.safe_dump({}))
    words = ("run", *FAST, PATIENT, "tracker=mlflow", "rounds=6")
    both = [Command(tmp_path, *words, f"hydra.run.dir={sweep / name}") for name in "01"]
    assert [point.wait() for point in both] == [0, 0]
    assert rounds_of(database) == sorted([*range(1, 7), *range(1, 7)])
    parent = run_id(sweep)
    assert ask(database, "select run_uuid, value from tags where key = 'mlflow.parentRunId'") == sorted(
        (run_id(sweep / name), parent) for name in "01"
    )
    assert ask(database, "select name, status from runs") == [
        ("multirun/today", "FINISHED"),
        ("multirun/today/0", "FINISHED"),
        ("multirun/today/1", "FINISHED"),
    ]


def test_a_sweep_from_the_command_line(database: Path):
    words = ("-m", *FAST, PATIENT, "tracker=mlflow", "rounds=1", "seed=1", "hydra.sweep.dir=outputs/sweep")
    assert main(["run", *words]) == 0
    names = [name for (name,) in ask(database, "select name from runs")]
    assert names == ["sweep", "sweep/0"]


def test_a_run_that_fails_is_told_as_failed(database: Path):
    folder = run("tracker=mlflow", "server_optimizer=momentum", "server_optimizer.lr=1e39", "rounds=2", code=1)
    assert ask(database, "select status from runs") == [("FAILED",)]
    assert run_id(folder)


def test_a_database_is_made_whole(empty: Path, tmp_path: Path):
    shutil.copy(empty, tmp_path / "there.db")
    assert ask(tmp_path / "there.db", "select count(*) from runs") == [(0,)]
    assert {path.name for path in empty.parent.iterdir()} == {"mlflow.db", ".tracker.lock", PROGRESS}


def test_a_database_in_the_making_is_progress(empty: Path, tmp_path: Path):
    assert (empty.parent / PROGRESS).read_text().count("a statement\n") > 1000
    with memo.lock_tracker(tmp_path, 1):
        os.utime(tmp_path / memo.LOCK, (0, 0))
        before = memo.progress(tmp_path, "mlflow")
        assert memo.progress(tmp_path, "mlflow") == before
        memo.show_progress(tmp_path)
        assert memo.progress(tmp_path, "mlflow") != before


def test_where_runs_go_without_a_server():
    run = Path("/home/me/outputs/2026-11-21/10-00-00")
    assert resolve_uri(None, run) == "sqlite:////home/me/outputs/mlflow.db"
    assert resolve_uri(None, Path("/home/me/mine")) == "sqlite:////home/me/mlflow.db"
    assert resolve_uri("http://host:5000", run) == "http://host:5000"
    assert resolve_uri("sqlite:///my.db", run) == f"sqlite:///{Path.cwd()}/my.db"
    assert artifact_location("sqlite:////home/me/outputs/mlflow.db") == "file:///home/me/outputs/mlartifacts"
    assert artifact_location("http://host:5000") is None
    assert run_title(run) == "2026-11-21/10-00-00"
    assert run_title(Path("/home/me/mine")) == "mine"


def test_a_database_that_is_there_already_is_an_address(tmp_path: Path):
    run, database = tmp_path / "sent" / "run", tmp_path / "sent" / "mlflow.db"
    run.mkdir(parents=True)
    assert MLflow().addresses(run) == ()
    database.touch()
    assert MLflow().addresses(run) == (f"sqlite:///{database}",)
    assert MLflow(uri="http://me:secret@host", experiment="CIFAR: a/b").addresses(run) == ("http://host",)
    assert (MLflow().named_addresses, MLflow(uri="databricks").named_addresses) == ((), ("databricks",))


def test_what_a_folder_remembers_counts_only_where_something_was_sent_before(tmp_path: Path):
    run, theirs = tmp_path / "outputs" / "run", f"sqlite:///{tmp_path / 'elsewhere' / 'theirs.db'}"
    known = memo.SyncState("mlflow", place=theirs)
    assert destination(None, known, run) == f"sqlite:///{tmp_path / 'outputs' / 'mlflow.db'}"
    remember_address(theirs)
    assert destination(None, known, run) == theirs
    assert destination("http://me:secret@host", known, run) == "http://host"
