"""A stranger's sweep: of its `multirun.yaml` a few checked words count, and nothing leaves its folder."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Recorder
from hostile import refusal, replaced

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.core.nested import walk
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.run import run as execution
from fedexp.sweep import saved_overrides

PATH = Path("many/multirun.yaml")
ALLOWED = {"hydra.sweep.subdir", "hydra.sweeper.params"}
POPEN = {"class": "subprocess.Popen", "args": [["touch", "ran"]], "_target_": "stranger_sweep.run"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The `multirun.yaml` of a sweep of two points, none of which is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("sweep"))
        patch.setattr(execution, "complete", Recorder())
        assert cli.main(["run", "-m", "experiment=smoke", "seed=0,1", "hydra.sweep.dir=many"]) == 0
        return read_yaml(PATH)


@pytest.fixture
def sweep(made: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A copy of it to change and to `write`, beside a module that leaves a file when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execution, "complete", Recorder())
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("stranger_sweep.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    sys.modules.pop("stranger_sweep", None)
    Path("many").mkdir()
    return json.loads(json.dumps(made))


def write(saved: dict[str, Any]) -> None:
    PATH.write_text(yaml.safe_dump(json.loads(json.dumps(saved)), sort_keys=False))  # without anchors


def demand_nothing_ran() -> None:
    assert {path.name for path in Path().iterdir()} <= {"many", "stranger_sweep.py", "cache", "__pycache__"}


def hydra_keys(saved: dict[str, Any]) -> list[str]:
    return [key for key, _ in walk({"hydra": saved["hydra"]})][1:]


def test_no_value_under_hydra_counts_but_the_words(sweep: dict[str, Any]):
    """All of them hostile at once, beside those that say how the sweep began."""
    hydra = sweep["hydra"]
    sources = hydra["runtime"]["config_sources"]
    began = {"overrides": hydra["overrides"], "job": {"config_name": "config", "env_set": {"PATH": "x"}}}
    sweep["hydra"] = {
        **dict.fromkeys(hydra, POPEN),
        "searchpath": ["pkg://stranger_sweep"],
        "callbacks": {"x": POPEN},
        "sweep": {"dir": "../elsewhere", "subdir": "../elsewhere"},
        "hydra_logging": {
            "version": 1,
            "handlers": {"x": POPEN, "y": {"class": "logging.FileHandler", "filename": "f"}},
        },
        "runtime": {"config_sources": sources},
        **began,
    }
    write(sweep)
    assert cli.main(["resume", "many"]) == 0
    demand_nothing_ran()
    assert {path.name for path in Path("many").iterdir()} >= {"0", "1", "sweep.csv"}


def test_no_word_about_hydra_counts_but_a_few(made: dict[str, Any]):
    """Every key there is, set, added and forced, with every kind of value."""
    values = ("x", "{class: subprocess.Popen}", "[pkg://stranger_sweep]")
    keys = [
        key
        for key in hydra_keys(made)
        if key not in ALLOWED and "/" not in key and not key.startswith("hydra.launcher.")
    ]
    words = [f"{sign}{key}={value}" for key in keys for sign, value in zip(("", "+", "++"), values, strict=True)]
    assert len(words) > 200
    assert all(passed_over(made, word) for word in words)


def passed_over(made: dict[str, Any], word: str) -> bool:
    hydra = {**made["hydra"], "overrides": {"task": ["seed=0,1"], "hydra": [word]}}
    return saved_overrides.read_overrides({"hydra": hydra}, [], PATH) == ["seed=0,1"]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("hydra.sweep.subdir=../x", "must be a path below the sweep's folder"),
        ("hydra.sweep.subdir=/x", "must be a path below the sweep's folder"),
        ("hydra.sweep.subdir='a/../../x'", "must be a path below the sweep's folder"),
        ("hydra.sweep.subdir=3", "must be a path below the sweep's folder"),
        ("hydra.sweep.subdir=null", "must be a path below the sweep's folder"),
        ("hydra/launcher=stranger", "must be one of basic, joblib"),
        ("hydra/launcher=../../x", "must be one of basic, joblib"),
        ("hydra/sweeper=optuna", "must be one of basic, one_at_a_time"),
        ("hydra.sweeper.params={seed: '0,1'}", "must be a text or number for a key of its own"),
        ("+hydra.sweeper.params.hydra=x", "must be a text or number for a key of its own"),
        ("+hydra.sweeper.params.hydra.searchpath=x", "must be a text or number for a key of its own"),
        ("hydra.sweeper.params.seed=[0,1]", "must be a text or number for a key of its own"),
        ("~hydra/launcher", "must be one of basic, joblib"),
        ("hydra.launcher.jobs=many", "must be a number"),
        ("hydra.launcher.jobs={a: 1}", "must be a number"),
        ("hydra.launcher._target_=stranger_sweep.X", "says where to compute"),
        ("hydra.launcher.address=ray://x", "says where to compute"),
        ("hydra.launcher.parameters={slurm_setup: [x]}", "says where to compute"),
        ("hydra.launcher={_target_: x}", None),
    ],
)
def test_what_counts_is_checked(made: dict[str, Any], word: str, wanted: str | None):
    hydra = {**made["hydra"], "overrides": {"task": ["seed=0,1"], "hydra": [word]}}
    if wanted is None:
        assert passed_over(made, word)
        return
    with pytest.raises(ConfigError, match=wanted):
        saved_overrides.read_overrides({"hydra": hydra}, [], PATH)


@pytest.mark.parametrize(
    "word",
    [
        "hydra.searchpath=[pkg://stranger_sweep]",
        "+hydra.callbacks.x._target_=stranger_sweep.X",
        "++hydra.hydra_logging.handlers.x={class: subprocess.Popen}",
        "~hydra.job_logging",
        "hydra/job_logging=disabled",
        "/hydra/job_logging=disabled",
        "experiment@hydra.callbacks=smoke",
        "+tracker@hydra.launcher=mlflow",
        "dataset=../../../tmp/evil",
        "dataset=digits,../../evil",
        "'",
        3,
        {"a": 1},
        None,
    ],
)
def test_a_setting_is_one_of_the_experiment(sweep: dict[str, Any], word: Any, capsys):
    sweep["hydra"]["overrides"]["task"] += [word]
    write(sweep)
    assert "many/multirun.yaml" in refusal(capsys, "resume", "many")
    demand_nothing_ran()


@pytest.mark.parametrize("params", ["hydra={searchpath: x}", "hydra=x", "hydra/job_logging=disabled"])
def test_nor_does_a_sweeper_make_others(sweep: dict[str, Any], params: str, capsys):
    sweep["hydra"]["overrides"]["hydra"] += [f"+hydra.sweeper.params.{params}"]
    write(sweep)
    assert "many/multirun.yaml" in refusal(capsys, "resume", "many")
    demand_nothing_ran()


@pytest.mark.parametrize("name", [None, 3, "../config", "/tmp/config", "a b"])
def test_a_root_config_is_a_name(sweep: dict[str, Any], name: Any, capsys):
    sweep["hydra"]["job"]["config_name"] = name
    write(sweep)
    assert "hydra.job.config_name must be the name of a config" in refusal(capsys, "resume", "many")


@pytest.mark.parametrize("hydra", [None, [], "x", {}, {"overrides": 3}, {"overrides": {"task": "seed=0", "hydra": []}}])
def test_a_file_of_another_shape_is_refused(sweep: dict[str, Any], hydra: Any, capsys):
    write({**sweep, "hydra": hydra})
    assert "many/multirun.yaml" in refusal(capsys, "resume", "many")


def test_options_of_a_stranger_are_used_when_the_user_names_them(sweep: dict[str, Any], capsys):
    Path("theirs/experiment").mkdir(parents=True)
    Path("theirs/experiment/smoke.yaml").write_text("# @package _global_\nhydra:\n  callbacks: {x: {_target_: a.b}}\n")
    own = {"path": str(Path("theirs").absolute()), "schema": "file", "provider": "command-line"}
    sweep["hydra"]["runtime"]["config_sources"] += [own]
    write(sweep)
    said = refusal(capsys, "resume", "many")
    assert said.endswith("if they are yours, add --config-dir theirs\n")
    Path("theirs/experiment/smoke.yaml").unlink()
    assert cli.main(["resume", "many", "--config-dir", "theirs"]) == 0


def test_a_point_may_not_lie_elsewhere(sweep: dict[str, Any], tmp_path: Path, capsys):
    (tmp_path / "cache").mkdir()
    write(sweep)
    replaced(Path("many/1"), "link", tmp_path / "cache")
    assert "many/1 must be a file of its own, but it is a link" in refusal(capsys, "resume", "many")


@pytest.mark.usefixtures("sweep")
def test_nor_in_a_sweep_of_ones_own(capsys):
    assert cli.main(["run", "-m", "experiment=smoke", "hydra.sweep.dir=own", "hydra.sweep.subdir=../${seed}"]) == 2
    assert "hydra.sweep.subdir must lead below own, got ../0" in capsys.readouterr().out
    assert not Path("0").exists()


@pytest.mark.parametrize(
    "change", [{"words": 3}, {"words": ["hydra.searchpath=[pkg://x]"]}, {"trials": "1"}, {"x": ""}]
)
def test_a_search_is_read_as_strictly(change: dict[str, Any], tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("found").mkdir()
    asked = {"words": ["local.lr=interval(0.1,1)"], "trials": 2, "seed": 0, "pruning": True, "config_dir": "theirs"}
    Path("found/search.yaml").write_text(yaml.safe_dump(asked | change))
    assert "found" in refusal(capsys, "resume", "found")


def test_a_point_that_is_a_file_is_told(sweep: dict[str, Any], capsys):
    write(sweep)
    Path("many/1").write_text("x")
    assert cli.main(["resume", "many"]) == 1
    assert "many/1 must be the folder of the point, but is a file; remove it" in "".join(capsys.readouterr())


@pytest.mark.parametrize("text", ["${oc.env:MINE}", r"$\{oc.env:MINE\}"])
@pytest.mark.parametrize("key", ["rounds", "local.lr", "data_dir", "selector._target_", "model"])
def test_it_does_not_learn_the_readers_environment(key: str, text: str, sweep: dict[str, Any], capsys, monkeypatch):
    monkeypatch.setenv("MINE", "s3cr3t")
    sweep["hydra"]["overrides"]["task"].append(f"{key}={text}")
    write(sweep)
    assert "must refer to keys of the config alone" in (said := refusal(capsys, "resume", "many"))
    assert "s3cr3t" not in said
    demand_nothing_ran()


def test_an_own_sweep_notes_what_the_environment_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execution, "complete", Recorder())
    monkeypatch.setenv("MINE", "my data, here")
    words = ["experiment=smoke", "seed=0,1", "hydra.sweep.dir=many", "data_dir=${oc.env:MINE}/x"]
    assert cli.main(["run", "-m", *words]) == 0
    monkeypatch.setenv("MINE", "elsewhere")
    saved = read_yaml(PATH)
    assert saved["data_dir"] == "my data, here/x"
    assert saved["hydra"]["overrides"]["task"][-1] == "data_dir='my data, here/x'"
    assert cli.main(["resume", "many"]) == 0
