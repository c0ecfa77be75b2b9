import math
import shutil

import pytest

from fedexp.core.errors import ConfigError
from fedexp.report.read import runs


def names(folders):
    return [folder.name for folder in folders]


def test_a_sweep_counts_as_its_points_in_the_order_of_their_numbers(make_run, tmp_path):
    for number in (10, 2, 0):
        make_run(f"sweep/{number}")
    (tmp_path / "sweep" / "multirun.yaml").touch()
    assert names(runs.find_run_folders(tmp_path / "sweep")) == ["0", "2", "10"]
    assert names(runs.find_run_folders(tmp_path)) == ["0", "2", "10"]
    assert names(runs.find_run_folders(tmp_path / "sweep" / "2")) == ["2"]


def test_a_run_given_twice_counts_once(make_run, tmp_path):
    folder = make_run("a")
    (tmp_path / "latest").symlink_to("a")
    found, _ = runs.collect_runs([tmp_path, folder, tmp_path / "latest"])
    assert len(found) == 1


def test_what_a_folder_tells(make_run):
    run = runs.read(make_run("a", seed=7))
    assert run is not None
    assert (run.seed, run.is_finished, run.has_simulated_clock) == (7, True, False)
    assert run.rounds.tolist() == [1, 2, 3, 4]
    assert run.selections.tolist() == [4, 4, 0, 0]
    assert run.config["selector.count"] == 2
    assert run.raw_config["selector.count"] == "${scenario.participants}"
    assert run.config["evaluation.toa"] == [0.5, 0.8, 0.99]
    assert all(map(math.isnan, run.column("selector.converged")))


def test_the_end_of_a_finished_run_is_its_last_round_and_of_another_the_last_that_was_evaluated(make_run, tmp_path):
    accuracy = [0.25, 0.5, None]
    for name, finished, end, area in (("ended", True, None, None), ("at_work", False, 0.5, 0.375)):
        make_run(name, accuracy=accuracy, finished=finished)
        ((run,), _) = runs.collect_runs([tmp_path / name])
        assert (run.final("test_accuracy"), run.area("test_accuracy")) == (end, area)


def test_a_line_that_was_cut_off_is_not_read(make_run):
    folder = make_run("a", accuracy=(0.4, 0.6))
    with (folder / "metrics.csv").open("a") as file:
        file.write("3,1.3,0.")
    run = runs.read(folder)
    assert run is not None
    assert run.rounds.tolist() == [1, 2]


def test_without_hydras_files_there_is_still_a_run(make_run):
    folder = make_run("a")
    shutil.rmtree(folder / ".hydra")
    for name in ("config.json", "clients.csv", "federation.csv", "summary.json"):
        (folder / name).unlink()
    run = runs.read(folder)
    assert run is not None
    assert (run.seed, run.is_finished, run.selections.tolist()) == (None, False, [])


def test_the_server_is_no_client(make_run):
    folder = make_run("a")
    (folder / "clients.csv").write_text("round,client\n1,-1\n1,3\n")
    run = runs.read(folder)
    assert run is not None
    assert run.selections.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("content", ["", "round,test_loss\n", "round"])
def test_runs_without_a_finished_round_are_named_apart(make_run, content, tmp_path):
    make_run("a")
    (make_run("b") / "metrics.csv").write_text(content)
    found, empty = runs.collect_runs([tmp_path])
    assert names(run.folder for run in found) == ["a"]
    assert names(run.folder for run in empty) == ["b"]
    assert empty[0].choices == found[0].choices
    with pytest.raises(ConfigError, match="needs a finished round, but none of the 1 run"):
        runs.collect_runs([tmp_path / "b"])


def test_wrong_folders(make_run, tmp_path):
    with pytest.raises(ConfigError, match="but there is none"):
        runs.collect_runs([tmp_path / "nowhere"])
    with pytest.raises(ConfigError, match="holds no runs"):
        runs.collect_runs([tmp_path])
    folder = make_run("a")
    with pytest.raises(ConfigError, match="but it is a file"):
        runs.collect_runs([folder / "metrics.csv"])
    (folder / "metrics.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ConfigError, match="must have a column round"):
        runs.collect_runs([folder])


@pytest.mark.parametrize(("name", "content"), [("config.json", "{"), ("summary.json", "{")])
def test_a_spoilt_file_is_named(make_run, name, content):
    folder = make_run("a")
    (folder / name).write_text(content)
    with pytest.raises(ConfigError, match=name):
        runs.read(folder)


def test_what_follows_the_seed_or_the_place_of_the_data_is_left_as_it_was_written(make_run):
    keys = {"fleet.seed": "${seed}", "fleet.offset": "${fleet.seed}", "federation.path": "${data_dir}/a.csv"}
    run = runs.read(make_run("a", seed=7, keys=keys))
    assert run is not None
    assert {key: run.config[key] for key in keys} == keys
    assert not {"seed", "data_dir"} & set(run.config)


def test_a_folder_of_an_unreleased_version_is_not_read_as_if_it_had_no_config(make_run):
    folder = make_run("a")
    (folder / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"a has rounds but no config\.json; restore it, or run again"):
        runs.read(folder)
