"""Sweeps: a folder for every point, refused or ended by name."""

from pathlib import Path

import pytest
from command_line import complaint, ending_with

from fedexp import cli, run


def test_a_sweep_runs_every_point_in_its_folder(runs, capsys):
    assert cli.main(["run", "seed=1,2", "-m", "model=mlp,keras_cnn"]) == 0
    assert [folder.name for _, folder in runs.calls] == ["0", "1", "2", "3"]
    assert [config["seed"] for config, _ in runs.calls] == [1, 1, 2, 2]
    sweep = runs.calls[0][1].parent
    assert sweep.parts[:2] == ("outputs", "multirun")
    assert Path("outputs/latest").resolve() == sweep.resolve()
    assert (sweep / "3" / "fedexp.log").exists()
    assert "#3 : seed=2 model=keras_cnn" in capsys.readouterr().out


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


def test_a_failing_point_is_named_and_ends_the_sweep(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, run.RunError("not finite"), at_seed=1)
    assert cli.main(["run", "-m", "seed=0,1,2"]) == 1
    assert complaint(capsys) == "fedexp: point 1 (seed=1): not finite"
    assert len(recorder.calls) == 2


@pytest.mark.usefixtures("runs")
def test_a_sweep_folder_given_by_hand_may_hold_no_sweep(capsys):
    assert cli.main(["run", "-m", "seed=0", "hydra.sweep.dir=many"]) == 0
    capsys.readouterr()
    assert cli.main(["run", "-m", "seed=0", "hydra.sweep.dir=many"]) == 2
    assert complaint(capsys) == "fedexp: many already holds a sweep; use another folder"
    assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys) == "fedexp: many is a sweep; resume one of its points, e.g. many/0"
