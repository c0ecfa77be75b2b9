"""Sweeps: a folder for every point, refused or ended by name."""

import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from command_line import complaint, ending_with

from fedexp import cli
from fedexp.core.errors import RunError
from fedexp.run.folders import lock_folder


@pytest.mark.usefixtures("runs")
def test_a_key_typed_twice_is_said_once_for_all_points(capsys):
    assert cli.main(["run", "-m", "seed=0,1", "seed=2,3"]) == 0
    assert capsys.readouterr().err.count("fedexp: seed is given 2 times: seed=2,3, the last one, counts\n") == 1


def test_a_sweep_runs_every_point_in_its_folder(runs, capsys):
    assert cli.main(["run", "seed=1,2", "-m", "model=mlp,keras_cnn"]) == 0
    assert [folder.name for _, folder in runs.calls] == ["0", "1", "2", "3"]
    assert [config["seed"] for config, _ in runs.calls] == [1, 1, 2, 2]
    sweep = runs.calls[0][1].parent
    assert sweep.parts[:2] == ("outputs", "multirun")
    assert Path("outputs/latest").resolve() == sweep.resolve()
    assert (sweep / "3" / "fedexp.log").exists()
    told = capsys.readouterr().out
    assert re.search(
        r"^2 of 4: seed=1 model=keras_cnn, [\d.]+ m?s; 2 left, about [\d.]+ m?s$",
        told,
        re.MULTILINE,
    )
    assert re.search(r"^4 of 4: seed=2 model=keras_cnn, [\d.]+ m?s$", told, re.MULTILINE)


def test_a_file_may_ask_for_a_sweep(runs):
    own = Path("own/experiment")
    own.mkdir(parents=True)
    sweep = "hydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n      seed: 3,4\n"
    (own / "seeds.yaml").write_text(f"# @package _global_\n# Seeds\n{sweep}")
    assert cli.main(["run", "experiment=seeds", "-cd", "own", """hydra.sweep.dir="it's here\""""]) == 0
    assert [(config["seed"], str(folder)) for config, folder in runs.calls] == [(3, "it's here/0"), (4, "it's here/1")]


@pytest.mark.usefixtures("runs")
def test_a_wrong_point_stops_the_sweep_before_it_starts(capsys):
    assert cli.main(["run", "-m", "seed=0,-1"]) == 2
    assert complaint(capsys) == "fedexp: point 1 (seed=-1): seed must be an integer >= 0, got -1"
    assert list(Path.cwd().iterdir()) == []


def test_a_failing_point_is_named_and_the_others_go_on(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, RunError("not finite"), at_seed=1)
    assert cli.main(["run", "-m", "seed=0,1,2", "hydra.sweep.dir=many"]) == 1
    said = capsys.readouterr()
    assert "failed: point 1 (seed=1): not finite\n" in said.out
    assert said.err == (
        "fedexp: 1 of 3 points failed: many/1; the first: not finite; all reasons are above and in their "
        "traceback.txt; to try them again: fedexp resume many\n"
    )
    assert len(recorder.calls) == 3
    assert "RunError: not finite" in Path("many/1/traceback.txt").read_text()
    assert not Path("many/0/traceback.txt").exists()


def test_a_full_disk_is_told_of_in_one_line(runs, monkeypatch, capsys):
    def full(path, _):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(import_module("fedexp.sweep.command"), "write_atomically", full)
    assert cli.main(["run", "-m", "seed=0,1", "hydra.sweep.dir=many"]) == 1
    assert complaint(capsys) == "fedexp: No space left on device: many/multirun.yaml"
    assert not runs.calls


def test_the_reason_of_a_failure_may_find_no_room(monkeypatch, capsys):
    def full(path, _):
        raise OSError(28, "No space left on device", str(path))

    ending_with(monkeypatch, RunError("not finite"), at_seed=0)
    monkeypatch.setattr(import_module("fedexp.sweep.run_point"), "write_atomically", full)
    assert cli.main(["run", "-m", "seed=0,1", "hydra.sweep.dir=many"]) == 1
    assert (
        "1 of 2 points failed: many/0; the first: not finite; all reasons are above; to try" in capsys.readouterr().err
    )
    assert Path("many/1/summary.json").exists()


def test_an_interrupted_sweep_says_how_it_goes_on(monkeypatch, capsys):
    ending_with(monkeypatch, KeyboardInterrupt(), at_seed=1)
    assert cli.main(["run", "-m", "seed=0,1,2", "hydra.sweep.dir=many"]) == 130
    assert complaint(capsys) == "fedexp: interrupted; continue with: fedexp resume many"


def test_resume_runs_what_is_missing_and_nothing_else(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, RunError("not finite"), at_seed=1)
    assert cli.main(["run", "-m", "seed=0,1,2", "rounds=5", "hydra.sweep.dir=many"]) == 1
    shutil.rmtree("many/2")
    recorder.error = None
    recorder.calls.clear()
    assert cli.main(["resume", "many", "hydra/launcher=basic"]) == 0
    assert [(config["seed"], config["rounds"], str(folder)) for config, folder in recorder.calls] == [
        (1, 5, "many/1"),
        (2, 5, "many/2"),
    ]
    assert not Path("many/1/traceback.txt").exists()
    assert cli.main(["resume", "many"]) == 0
    assert len(recorder.calls) == 2
    assert capsys.readouterr().err.count("points failed") == 1


@pytest.mark.parametrize("words", [("seed=0,1",), ("seed=0,1", "hydra.sweep.subdir=${seed}")])
@pytest.mark.parametrize("content", ["", "[]", "{", '{"rounds": "5"}'])
def test_a_point_with_a_damaged_summary_is_neither_finished_nor_run_again(content: str, words, runs, capsys):
    assert cli.main(["run", "-m", *words, "hydra.sweep.dir=many"]) == 0
    path = Path("many/0/summary.json")
    path.write_text(content)
    capsys.readouterr()
    assert cli.main(["report", "many"]) == 2
    told = complaint(capsys)
    assert f"{path} " in told
    assert told.endswith("; is it damaged?")
    assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys) == told
    assert (path.read_text(), len(runs.calls)) == (content, 2)


def change(path: str, old: str, new: str) -> None:
    """Replaces a text that stands in a file."""
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("grid", "folder", "told"),
    [
        ("local.lr=0.1,0.15,0.2", "many/1", "local.lr (then 0.2, now 0.15)"),
        ("local.lr=0.1,0.3", "many/1", "local.lr (then 0.2, now 0.3)"),
        ("seed=0,1", "many/1", "local.lr (then 0.2, now 0.1), seed (then 0, now 1)"),
    ],
)
def test_a_folder_is_not_taken_for_another_point(grid: str, folder: str, told: str, runs, capsys):
    assert cli.main(["run", "-m", "local.lr=0.1,0.2", "hydra.sweep.dir=many"]) == 0
    shutil.rmtree("many/0")
    change("many/multirun.yaml", "local.lr=0.1,0.2", grid)
    capsys.readouterr()
    assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys) == (
        f"fedexp: {folder} was begun as another point: {told}; put its config.json and multirun.yaml back, or start a "
        "new sweep"
    )
    assert len(runs.calls) == 2
    assert not Path("many/0").exists()


def test_points_behind_the_others_may_be_added(runs):
    assert cli.main(["run", "-m", "local.lr=0.1,0.2", "hydra.sweep.dir=many"]) == 0
    change("many/multirun.yaml", "local.lr=0.1,0.2", "local.lr=0.1,2e-1,0.3")
    assert cli.main(["resume", "many"]) == 0
    assert told(runs, "local.lr") == [(0.1,), (0.2,), (0.3,)]


@pytest.mark.parametrize("words", [("seed=0,1",), ("seed=0,1", "hydra.sweep.subdir=${seed}")])
def test_a_point_that_was_changed_before_its_end_is_told_of(words: tuple[str, ...], runs, capsys):
    assert cli.main(["run", "-m", *words, "hydra.sweep.dir=many"]) == 0
    Path("many/1/summary.json").unlink()
    change("many/1/config.json", '"lr": 0.1', '"lr": 0.9')
    assert cli.main(["resume", "many"]) in (1, 2)
    assert "many/1 was begun as another point: local.lr (then 0.9, now 0.1); put" in "".join(capsys.readouterr())
    assert len(runs.calls) == 2


@pytest.mark.parametrize(
    ("name", "old", "new", "wanted"),
    [
        (
            "config.json",
            '"rounds": 3',
            '"rounds": 5',
            "is finished after 3 rounds, but its config.json now says rounds=5",
        ),
        ("metrics.csv", "\n3,", "\n4,", "is finished after 4 rounds, but its config.json now says rounds=3"),
        ("summary.json", "{}", '{"rounds": 4}', "must have a line of metrics.csv for every round of summary.json"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_a_point_that_was_changed_after_its_end_is_refused_like_a_run(name, old, new, wanted, capsys):
    assert cli.main(["run", "-m", "seed=0,1", "rounds=3", "hydra.sweep.dir=many"]) == 0
    change(f"many/1/{name}", old, new)
    assert cli.main(["resume", "many/1"]) == 2
    told = complaint(capsys)
    assert f"many/1 {wanted}" in told
    assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys) == told


def test_a_sweep_is_one_process_s_at_a_time(runs, monkeypatch, capsys):
    assert cli.main(["run", "-m", "seed=0,1", "hydra.sweep.dir=many"]) == 0
    shutil.rmtree("many/1")
    monkeypatch.setattr(lock_folder, "__defaults__", (0.0,))
    with lock_folder(Path("many")):
        assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys).startswith("fedexp: many is being run by process ")
    assert len(runs.calls) == 2
    assert cli.main(["resume", "many"]) == 0
    assert len(runs.calls) == 3


@pytest.mark.parametrize("words", [["verify"], ["resume"], ["export", "--to", "mine"]])
def test_a_folder_above_runs_is_none(words: list[str], capsys):
    for folder in ("many/0", "many/1"):
        Path(folder).mkdir(parents=True)
        Path(folder, "config.json").write_text("{}")
    Path("many/latest").symlink_to("1")
    assert cli.main([*words, "many"]) == 2
    assert complaint(capsys) == (
        f"fedexp: many is no run, but holds runs below; name one of them, e.g. fedexp {words[0]} many/latest"
    )


def test_a_sweep_may_be_moved_before_it_goes_on(runs):
    assert cli.main(["run", "-m", "experiment=smoke", "seed=0,1", "hydra.sweep.dir=many"]) == 0
    Path("many").rename("moved")
    shutil.rmtree("moved/1")
    assert cli.main(["resume", "moved"]) == 0
    assert [str(folder) for _, folder in runs.calls] == ["many/0", "many/1", "moved/1"]


def test_points_in_folders_of_other_names(runs):
    words = ("seed=0,1", "hydra.sweep.dir=many", "hydra.sweep.subdir=${hydra.job.override_dirname}")
    assert cli.main(["run", "-m", *words]) == 0
    assert [str(folder) for _, folder in runs.calls] == ["many/seed=0", "many/seed=1"]
    shutil.rmtree("many/seed=0")
    assert cli.main(["resume", "many"]) == 0
    assert [str(folder) for _, folder in runs.calls[2:]] == ["many/seed=0"]


def test_a_folder_named_by_a_seed_is_not_that_of_the_point_of_this_number(runs):
    assert cli.main(["run", "-m", "seed=1,0", "hydra.sweep.dir=many", "hydra.sweep.subdir=${seed}"]) == 0
    assert [(config["seed"], str(folder)) for config, folder in runs.calls] == [(1, "many/1"), (0, "many/0")]


def test_two_points_in_one_folder_are_told_of(runs, capsys):
    assert cli.main(["run", "-m", "seed=1,0", "hydra.sweep.dir=many", "hydra.sweep.subdir=one"]) == 1
    assert [config["seed"] for config, _ in runs.calls] == [1]
    told = "failed: point 1 (seed=0): its folder is that of point 0, many/one; hydra.sweep.subdir must differ"
    assert told in capsys.readouterr().out


@pytest.mark.usefixtures("runs")
def test_a_sweep_goes_on_as_it_began(capsys):
    own = Path("own/experiment")
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("# @package _global_\n# Mine\nrounds: 3\n")
    assert cli.main(["run", "-m", "seed=0,1", "experiment=mine", "-cd", "own", "hydra.sweep.dir=many"]) == 0
    assert cli.main(["resume", "many", "seed=5"]) == 2
    told = "fedexp: a sweep goes on as it began, but for hydra/launcher and tracker; got seed=5\n"
    assert capsys.readouterr().err == told
    assert cli.main(["resume", "many", "hydra.mode=RUN"]) == 2
    assert capsys.readouterr().err == told.replace("seed=5", "hydra.mode=RUN")
    (own / "mine.yaml").write_text("# @package _global_\n# Mine\nrounds: 4\n")
    assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys) == (
        "fedexp: many was begun with other configs: rounds (then 3, now 4); restore these keys or start a new sweep"
    )


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("hydra/launcher=joblib", "hydra.launcher.jobs=0"), "hydra.launcher.jobs must be an integer >= 1, got 0"),
        (
            ("hydra/launcher=joblib", "hydra.launcher.job=1"),
            "unknown key hydra.launcher.job; did you mean hydra.launcher.jobs?",
        ),
        (
            ("hydra/launcher=submitit_slurm", "hydra.launcher.parameters={slurm_partition: gpu}"),
            "hydra/launcher=submitit_slurm needs Slurm, but there is no srun here; try submitit_local",
        ),
        (("hydra/launcher=jolib",), "unknown option hydra/launcher=jolib; did you mean joblib?"),
    ],
)
def test_a_wrong_launcher_is_refused_before_anything_is_made(words, told, capsys):
    assert cli.main(["run", "-m", "seed=0,1", *words]) == 2
    assert complaint(capsys) == f"fedexp: {told}"
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.usefixtures("runs")
def test_a_sweep_folder_given_by_hand_may_hold_no_sweep(capsys):
    assert cli.main(["run", "-m", "seed=0", "hydra.sweep.dir=many"]) == 0
    capsys.readouterr()
    assert cli.main(["run", "-m", "seed=0", "hydra.sweep.dir=many"]) == 2
    assert complaint(capsys) == "fedexp: many already holds a sweep; use fedexp resume many or another folder"


def told(runs, *keys):
    """What the points were given for these dotted keys."""
    found = []
    for config, _ in runs.calls:
        values = []
        for key in keys:
            node = config
            for name in key.split("."):
                node = node[name]
            values.append(node)
        found.append(tuple(values))
    return found


def test_one_key_at_a_time(runs):
    words = ("local.lr=0.2,0.3", "local.epochs=2", "local.batch_size=5,full", "seed=0,1")
    assert cli.main(["run", "-m", "hydra/sweeper=one_at_a_time", *words]) == 0
    assert told(runs, "local.lr", "local.batch_size", "seed", "local.epochs") == [
        (lr, size, seed, 2)
        for lr, size in [(0.1, 20), (0.2, 20), (0.3, 20), (0.1, 5), (0.1, "full")]
        for seed in (0, 1)
    ]


@pytest.mark.usefixtures("runs")
def test_one_key_at_a_time_is_checked_before_it_starts(capsys):
    assert cli.main(["run", "-m", "hydra/sweeper=one_at_a_time", "local.epochs=2,3", "local.lr=0.2,-1"]) == 2
    assert complaint(capsys) == "fedexp: point 4 (local.lr=-1): local.lr must be a number > 0, got -1"
    assert list(Path.cwd().iterdir()) == []


def test_the_sweep_of_dp_sgd_gives_way_to_the_command_line(runs):
    words = ("dataset=synthetic", "local.lr=3", "local.epochs=5,6", *("privacy.clip=1", "privacy.noise_multiplier=1"))
    assert cli.main(["run", "-m", "experiment=dp_sweep", *words]) == 0
    found = told(runs, "local.lr", "local.epochs", "privacy.noise_multiplier")
    assert found[0] == (3, 1, 1), "the centre"
    assert {(lr, sigma) for lr, _, sigma in found} == {(3, 1)}
    assert sorted({epochs for _, epochs, _ in found}) == [1, 5, 6]
    alike = [tuple(map(str, point)) for point in told(runs, "local.epochs", "local.batch_size", "privacy.clip")]
    assert len(alike) == len(set(alike))
    assert all(sum(a != b for a, b in zip(alike[0], point, strict=True)) == 1 for point in alike[1:])
