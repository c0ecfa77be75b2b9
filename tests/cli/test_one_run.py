"""One run: its config, its folder, and how it ends."""

import json
import logging
import sys
import time
from pathlib import Path

import pytest
from command_line import complaint, ending_with

from fedexp import cli
from fedexp.core.errors import ConfigError, RunError
from fedexp.run import run as execution


def test_a_run_gets_the_plain_config_and_a_folder_of_its_own(runs):
    assert cli.main(["run", "seed=7", "model=keras_cnn"]) == 0
    ((config, folder),) = runs.calls
    assert config["seed"] == 7
    assert config["selector"]["count"] == config["scenario"]["participants"]
    assert "hydra" not in config
    assert json.loads(json.dumps(config)) == config
    assert folder.parts[0] == "outputs"
    assert (folder / ".hydra" / "overrides.yaml").read_text() == "- seed=7\n- model=keras_cnn\n"
    assert (folder / "fedexp.log").exists()
    assert not (Path("outputs") / "latest").readlink().is_absolute()
    assert Path("outputs/latest").resolve() == folder.resolve()


def test_two_runs_of_the_same_second_do_not_share_a_folder(runs):
    for _ in range(3):
        assert cli.main(["run", "hydra.run.dir=outputs/${now:%Y}/x"]) == 0
    year = time.strftime("%Y")
    assert [str(folder) for _, folder in runs.calls] == [f"outputs/{year}/{name}" for name in ("x", "x-2", "x-3")]
    assert Path("outputs/latest").readlink() == Path(year, "x-3")


@pytest.mark.usefixtures("runs")
def test_a_folder_given_by_hand_may_hold_no_run(capsys):
    assert cli.main(["run", "hydra.run.dir=mine"]) == 0
    capsys.readouterr()
    assert cli.main(["run", "hydra.run.dir=mine"]) == 2
    assert complaint(capsys) == "fedexp: mine already holds a run; use fedexp resume mine or another folder"
    assert not Path("outputs").exists()


@pytest.mark.usefixtures("runs")
def test_a_folder_that_cannot_be_made(capsys):
    Path("file").touch()
    assert cli.main(["run", "hydra.run.dir=file/x"]) == 2
    assert complaint(capsys) == "fedexp: cannot make the folder file/x: Not a directory; give another folder"


def test_the_config_may_be_refused_while_it_runs(monkeypatch, capsys):
    ending_with(monkeypatch, ConfigError("no room"))
    assert cli.main(["run"]) == 2
    assert complaint(capsys) == "fedexp: no room"


def test_a_run_that_had_to_end(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, RunError("not finite\nthe last state is kept"))
    assert cli.main(["run"]) == 1
    assert complaint(capsys) == "fedexp: not finite the last state is kept"
    assert "ERROR not finite" in (recorder.calls[0][1] / "fedexp.log").read_text()


def test_a_defect_shows_its_traceback_and_leaves_it_in_the_log(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, ZeroDivisionError("by zero"))
    assert cli.main(["run"]) == 1
    text = capsys.readouterr().err
    assert text.startswith("Traceback")
    assert text.endswith("fedexp: ZeroDivisionError: by zero\n")
    assert "Traceback" in (recorder.calls[0][1] / "fedexp.log").read_text()


LEAVING = """
import sys
from dataclasses import dataclass
from fedexp.parts.selector.random import Random

class Leaving(Random):
    def choose(self, *given):
        sys.exit()
"""
LEFT = ("experiment=smoke", "engine=loop", "engine.workers=1", "selector._target_=leaving.Leaving")


@pytest.fixture
def leaving(tmp_path, monkeypatch):
    """A module of the user's own, written to what is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("leaving", None)
    (tmp_path / "leaving.py").write_text(LEAVING)
    return tmp_path / "leaving.py"


def test_a_part_that_ends_the_process_is_named(leaving, capsys):
    told = "fedexp: leaving.Leaving.choose (leaving.py, line 8) raised SystemExit"
    for words in (("run", *LEFT, "hydra.run.dir=made"), ("plan", *LEFT)):
        assert cli.main(words) == 1
        assert capsys.readouterr().err.splitlines()[-1].startswith(told)
    leaving.write_text(LEAVING.replace("sys.exit()", "return super().choose(*given)"))
    sys.modules.pop("leaving")
    assert cli.main(["run", *LEFT, "hydra.run.dir=whole"]) == 0
    leaving.write_text(LEAVING)
    sys.modules.pop("leaving")
    assert cli.main(["verify", "whole"]) == 2
    assert "was made with another leaving" in capsys.readouterr().err
    assert cli.main(["verify", "whole", "--trust-modules", "leaving"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(told)


@pytest.mark.parametrize(
    "place", ["def check(self):\n        sys.exit()\n    def choose", "sys.exit()\n    def choose"]
)
def test_so_is_one_that_ends_it_before_it_is_made(place, leaving, capsys):
    leaving.write_text(LEAVING.replace("def choose", place))
    assert cli.main(["run", *LEFT]) == 2
    assert "SystemExit" in complaint(capsys)


def test_an_interrupted_run_says_how_to_continue(monkeypatch, capsys):
    def interrupted(_, folder, *__):
        (folder / "state.pt").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "run", interrupted)
    assert cli.main(["run", "hydra.run.dir=outputs/mine"]) == 130
    assert complaint(capsys) == "fedexp: interrupted; continue with: fedexp resume outputs/mine"


@pytest.mark.usefixtures("runs")
def test_the_root_logger_is_left_as_it_was():
    before = logging.getLogger().handlers[:], logging.getLogger().level
    assert cli.main(["run"]) == 0
    assert (logging.getLogger().handlers, logging.getLogger().level) == before


def test_the_users_own_experiments(runs):
    own = Path("own/experiment")
    own.mkdir(parents=True)
    (own / "tiny.yaml").write_text("# @package _global_\n# Mine\ndefaults:\n  - override /model: keras_cnn\nseed: 5\n")
    assert cli.main(["run", "experiment=tiny", "--config-dir", "own"]) == 0
    ((config, _),) = runs.calls
    assert (config["seed"], config["model"]["_target_"]) == (5, "fedexp.parts.model.keras_cnn.KerasCNN")
