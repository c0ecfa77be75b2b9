"""Resume, data, and the ranks under torchrun."""

import logging
from pathlib import Path

import pytest
from command_line import complaint

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.run import run as execution


@pytest.mark.usefixtures("runs")
def test_resume_continues_in_the_folder_and_its_log(monkeypatch, capsys):
    cli.main(["run", "hydra.run.dir=mine"])
    resumed = []
    monkeypatch.setattr(execution, "resume", lambda config, folder, trust: resumed.append(folder))
    assert cli.main(["resume", "mine"]) == 0
    assert resumed == [Path("mine")]
    monkeypatch.setattr(execution, "resume", lambda *_: (_ for _ in ()).throw(ConfigError("another config")))
    capsys.readouterr()
    assert cli.main(["resume", "mine"]) == 2
    assert complaint(capsys) == "fedexp: another config"
    assert "ERROR another config" in Path("mine/fedexp.log").read_text()


def test_other_ranks_follow_and_write_nothing(runs, monkeypatch):
    followed = []
    monkeypatch.setattr(execution, "follow", lambda config, _: followed.append(config))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run", "seed=3"]) == 0
    assert [config["seed"] for config in followed] == [3]
    assert runs.calls == []
    assert list(Path.cwd().iterdir()) == []


def test_other_ranks_leave_the_log_to_the_first(monkeypatch, caplog):
    monkeypatch.setattr(execution, "follow", lambda *_: logging.getLogger("fedexp").critical("told by rank 0 too"))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run"]) == 0
    logging.getLogger("fedexp").warning("after the run")
    assert caplog.messages == ["after the run"]


def test_torchrun_takes_one_run_at_a_time(runs, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run", "-m", "seed=3,4"]) == 2
    assert complaint(capsys) == "fedexp: a sweep (-m) cannot run under torchrun; start torchrun once for each point"
    assert runs.calls == []


@pytest.mark.usefixtures("runs")
def test_other_ranks_say_who_they_are(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run", "model=mpl"]) == 2
    assert complaint(capsys) == "fedexp (rank 1): unknown option model=mpl; did you mean mlp?"


def test_data_commands_get_names_and_folder(monkeypatch):
    from fedexp.commands import data
    from fedexp.data import store

    calls = []
    codes = {"check": 0, "download": 2}
    monkeypatch.setattr(data, "check_files", lambda verb, found, at: calls.append(([*found], at)) or codes[verb])
    assert cli.main(["data", "check", "mnist", "har"]) == 0
    assert cli.main(["data", "download", "data_dir=d", "mnist"]) == 2
    assert cli.main(["data", "check", "mnist", "--data-dir", "d"]) == 0
    assert calls == [(["mnist", "har"], store.data_root()), (["mnist"], Path("d")), (["mnist"], Path("d"))]
