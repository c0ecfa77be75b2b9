"""Runs that are older than a group stand beside newer ones in which it does nothing."""

from pathlib import Path

from fedexp.report.read.methods import group_runs, options, settings
from fedexp.report.read.runs import collect_runs


def test_a_group_that_did_not_exist_did_nothing(make_run, tmp_path: Path):
    make_run("old", seed=0, accuracy=(0.5,), choices={"selector": "random"}, keys={})
    make_run(
        "new",
        seed=1,
        accuracy=(0.6,),
        choices={"selector": "random", "privacy": "none"},
        keys={"privacy._target_": "fedexp.parts.privacy.contract.Privacy"},
    )
    make_run("private", seed=0, accuracy=(0.4,), choices={"selector": "random", "privacy": "dp_sgd"}, keys={})
    runs = collect_runs([tmp_path])[0]
    by_folder = {run.folder.name: run for run in runs}
    assert options(by_folder["old"])["privacy"] == "none"
    assert options(by_folder["old"]) == options(by_folder["new"])
    assert settings(by_folder["old"]) == settings(by_folder["new"])
    methods = group_runs(runs)
    assert sorted(len(method.runs) for method in methods) == [1, 2]
