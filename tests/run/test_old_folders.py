"""A run folder of before the parts moved: resumed, verified, reported and compared like one of today."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import complaint

from fedexp import cli
from fedexp.config import noted, roles
from fedexp.config.compose import read_config
from fedexp.report import methods, runs
from fedexp.run import checkpoint, retrack
from fedexp.run.tables import TIMINGS

GOLDEN = Path(__file__).parents[1] / "golden"
SAVED = 4  # the last round that has a state; one more is written


def copied(place: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "old_run", place))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The old run, taken to its end."""
    folder = copied(tmp_path_factory.mktemp("was") / "run")
    assert cli.main(["resume", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of today with the settings of the old one, whose `auto` meant other methods, on all examples."""
    folder = tmp_path_factory.mktemp("is") / "run"
    as_before = ("selector.shapley.method=exact_or_gtg", "selector.shapley.examples=null")
    assert cli.main(["run", *noted.overrides(GOLDEN / "old_run"), *as_before, f"hydra.run.dir={folder}"]) == 0
    return folder


def test_it_goes_on_from_the_saved_round(ended: Path):
    was = (GOLDEN / "old_run" / "metrics.csv").read_text().splitlines()[: SAVED + 1]
    assert (ended / "metrics.csv").read_text().splitlines()[: SAVED + 1] == was, "what was saved is not made again"
    assert f"continuing after round {SAVED}\n" in (ended / "fedexp.log").read_text()
    table = pd.read_csv(ended / "metrics.csv").drop(columns=list(TIMINGS), errors="ignore")
    pd.testing.assert_frame_equal(table, pd.read_csv(GOLDEN / "old_run.csv"), rtol=1e-4)


def test_verify_agrees_before_and_after(ended: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["verify", str(copied(tmp_path / "begun")), "--rounds", "5"]) == 0
    assert cli.main(["verify", str(ended), "--rounds", "8"]) == 0
    said = capsys.readouterr().out
    assert said.count("  equal\n") == 5 + 8
    assert said.count("holds round") == 4 + 6


def test_its_config_is_that_of_today(new: Path):
    then, now = read_config(GOLDEN / "old_run"), read_config(new)
    for config in (then, now):
        del (
            config["evaluation"]["roa"],
            config["evaluation"]["toa"],
        )  # what is told when nobody asks has changed, and no result with it
    assert then.items() <= now.items()
    later = [role for role in roles.every() if role.name in now.keys() - then.keys()]
    assert len(now) == len(then) + len(later)
    assert all(role.is_idle(now) for role in later), "roles that came later do nothing"


def test_old_and_new_are_one_method(ended: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found, empty = runs.collect([ended, new])
    (method,) = methods.group(found)
    assert (len(method.runs), len(method.repeats), method.unfinished, empty) == (1, 1, 0, [])
    assert method.label == "greedyfed"
    for name in ("report.md", "report.html"):
        assert cli.main(["report", str(ended), str(new), "--out", str(tmp_path / name)]) == 0
    assert "greedyfed" in capsys.readouterr().out
    assert cli.main(["compare", str(ended), "--against", str(new), "--out", str(tmp_path / "compare.md")]) == 0
    page = (tmp_path / "compare.md").read_text()
    assert "greedyfed in" in page, "one method, told apart by the places"
    assert "_target_" not in page


def test_another_tracker_leaves_the_rest_as_it_is(tmp_path: Path):
    folder = copied(tmp_path / "run")
    before = read_config(folder)
    retrack.put(folder, {"_target_": "fedexp.parts.tracker.tensorboard.TensorBoard", "folder": "x"})
    after = read_config(folder)
    assert after.pop("tracker")["folder"] == "x"
    assert before.pop("tracker") == {"_target_": "fedexp.parts.tracker.contract.Tracker"}
    assert after == before
    assert checkpoint.load(folder, after, torch.device("cpu")) is not None


def test_a_module_that_never_was_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = copied(tmp_path / "run")
    path = folder / ".hydra" / "config.yaml"
    path.write_text(path.read_text().replace("fedexp.selectors.greedyfed", "fedexp.selectors.nowhere"))
    assert cli.main(["resume", str(folder)]) == 2
    assert "no module fedexp.parts.selector.nowhere" in complaint(capsys)
