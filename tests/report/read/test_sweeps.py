"""What sweeps were asked for."""

from pathlib import Path

import pytest
import yaml

from fedexp.report.read import sweeps


def sweep(folder: Path, task: list[str], hydra: list[str] | None = None) -> list[Path]:
    """Two points of a sweep with these words."""
    folder.mkdir()
    content = {"hydra": {"overrides": {"task": task, "hydra": hydra or ["hydra.mode=MULTIRUN"]}}}
    (folder / "multirun.yaml").write_text(yaml.safe_dump(content))
    return [folder / "0", folder / "1"]


def test_plain_lists_and_ranges_are_values_as_tables_write_them(tmp_path: Path):
    words = ["aggregator=fedavg,krum", "local.lr=0.10,1e-3,1", "seed=range(2,5)", "rounds=3", "model.hidden=[8],[9]"]
    planned = sweeps.planned_values(sweep(tmp_path / "a", words))
    assert planned.values == {"aggregator": ("fedavg", "krum"), "local.lr": ("0.1", "0.001", "1")}
    assert planned.seeds == 3


def test_of_several_sweeps_values_are_joined_and_the_most_seeds_count(tmp_path: Path):
    folders = sweep(tmp_path / "a", ["attack=none,flip", "seed=0,1"]) + sweep(tmp_path / "b", ["attack=flip,zero"])
    planned = sweeps.planned_values([*folders, tmp_path / "single"])
    assert (planned.values, planned.seeds) == ({"attack": ("none", "flip", "zero")}, 2)


@pytest.mark.parametrize(("task", "hydra"), [(["points=a.csv"], None), ([], ["hydra/sweeper=one_at_a_time"])])
def test_nothing_is_said_of_points_that_do_not_cross(tmp_path: Path, task, hydra):
    folders = sweep(tmp_path / "a", ["attack=none,flip", *task], hydra)
    assert sweeps.planned_values(folders) == sweeps.Planned()
    assert sweeps.commands(folders) == " ".join(["fedexp run -m attack=none,flip", *task, *(hydra or [])])


def test_a_damaged_file_says_nothing(tmp_path: Path):
    folders = sweep(tmp_path / "a", ["attack=none,flip"])
    for content in ("", "hydra: [", "hydra: {overrides: {task: 3}}", "- a", "hydra: !!python/name:os.system x"):
        (tmp_path / "a/multirun.yaml").write_text(content)
        assert sweeps.planned_values(folders) == sweeps.Planned()
        assert sweeps.commands(folders) == ""


def test_a_password_is_no_part_of_a_command(tmp_path: Path):
    folders = sweep(tmp_path / "a", ["tracker=mlflow", "tracker.uri=http://me:secret@host"])
    assert "secret" not in sweeps.commands(folders)


def test_no_list_is_endless(tmp_path: Path):
    words = [f"seed=range(0,{'9' * 5000})", f"rounds={','.join(map(str, range(20_000)))}", "x=range(20000,90000)"]
    planned = sweeps.planned_values(sweep(tmp_path / "a", words))
    assert planned.seeds == 0
    assert planned.values["rounds"] == tuple(map(str, range(10_000)))
    assert planned.values["x"] == tuple(map(str, range(20_000, 30_000)))
