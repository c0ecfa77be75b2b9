"""A sweep folder of before the parts moved: what is missing is run and nothing else, and its points are of today."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from processes import Command

from fedexp import cli
from fedexp.config import noted
from fedexp.report import methods, runs
from fedexp.sweep import multirun
from fedexp.sweep.launchers.joblib import Joblib

GOLDEN = Path(__file__).parents[1] / "golden"
PLUGIN = "hydra_plugins.hydra_joblib_launcher.joblib_launcher"
FINISHED, BEGUN, POINTS = "0", "1", 4
SAVED = 2  # the last round of the begun point that has a state; one more is written


def copied(place: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "old_sweep", place))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The old sweep, taken to its end in this process."""
    folder = copied(tmp_path_factory.mktemp("was") / "sweep")
    assert cli.main(["resume", str(folder), "hydra/launcher=basic"]) == 0
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def demand_whole(folder: Path) -> None:
    """The table of the same sweep that was never killed; the finished point as it was, the begun one continued."""
    pd.testing.assert_frame_equal(pd.read_csv(folder / "sweep.csv"), pd.read_csv(GOLDEN / "old_sweep.csv"), rtol=1e-4)
    assert content(folder / FINISHED) == content(GOLDEN / "old_sweep" / FINISHED)
    was, is_now = (path / BEGUN / "metrics.csv" for path in (GOLDEN / "old_sweep", folder))
    saved = was.read_text().splitlines()[: SAVED + 1]
    assert is_now.read_text().splitlines()[: SAVED + 1] == saved, "what was saved is not made again"
    assert f"continuing after round {SAVED}\n" in (folder / BEGUN / "fedexp.log").read_text()
    assert sorted(path.parent.name for path in folder.glob("*/summary.json")) == [str(n) for n in range(POINTS)]


def test_what_is_missing_is_run(ended: Path):
    demand_whole(ended)


def test_it_goes_on_with_the_launcher_of_its_beginning(tmp_path: Path):
    """The sweep was made with `hydra/launcher=joblib`, whose class stood elsewhere."""
    copied(tmp_path / "old")
    resumed = Command(tmp_path, "resume", "old")
    resumed.finish()
    told = [line.partition(":")[0] for line in resumed.said.read_text().splitlines() if " of 4: " in line]
    assert sorted(told) == ["2 of 4", "3 of 4", "4 of 4"]
    demand_whole(tmp_path / "old")


def test_what_a_launcher_of_hydras_plugins_began_goes_on_without_the_plugin(tmp_path: Path, monkeypatch, capsys):
    """Sweeps of before we had launchers name the plugins' classes and keys."""
    saved = copied(tmp_path / "old") / "multirun.yaml"
    ours = ("fedexp.launchers.joblib.Joblib", "    jobs: ", "    - hydra/launcher=joblib\n")
    theirs = (f"{PLUGIN}.JoblibLauncher", "    n_jobs: ", f"{ours[2]}    - hydra.launcher.n_jobs=2\n")
    for before, then in zip(ours, theirs, strict=True):
        assert before in saved.read_text()
        saved.write_text(saved.read_text().replace(before, then))
    begun = []
    monkeypatch.setattr(multirun, "_execute", begun.append)
    assert cli.main(["resume", str(saved.parent)]) == 2
    assert "hydra.launcher.n_jobs=2; if that is right, type it again, or another hydra" in capsys.readouterr().err
    assert cli.main(["resume", str(saved.parent), "hydra/launcher=joblib", "hydra.launcher.jobs=2"]) == 0
    assert [sweep.launcher for sweep in begun] == [Joblib(jobs=2)]


def test_a_point_that_was_finished_then_can_be_verified(ended: Path):
    assert cli.main(["verify", str(ended / FINISHED)]) == 0


def test_points_of_then_and_now_differ_in_what_was_swept(ended: Path, tmp_path: Path):
    found, _ = runs.collect([ended])
    grouped = methods.group(found)
    assert [method.label for method in grouped] == ["lr=0.1", "lr=0.2", "lr=0.3", "lr=0.5"]
    assert cli.main(["report", str(ended), "--out", str(tmp_path / "report.md")]) == 0
    assert "_target_" not in (tmp_path / "report.md").read_text()


def test_a_run_of_today_is_the_method_of_its_point(ended: Path, tmp_path: Path):
    words = [*noted.overrides(ended / FINISHED), "seed=1", f"hydra.run.dir={tmp_path / 'new'}"]
    assert cli.main(["run", *words]) == 0
    found, _ = runs.collect([ended / FINISHED, tmp_path / "new"])
    assert [len(method.runs) for method in methods.group(found)] == [2]
    sides = [str(ended / "3"), str(ended / "2"), "--against", str(ended / FINISHED)]
    assert cli.main(["compare", *sides, "--out", str(tmp_path / "compare.md")]) == 0
    assert "local.lr: 0.5 / 0.1" in (tmp_path / "compare.md").read_text()
