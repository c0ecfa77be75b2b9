"""KEY=VALUE words pick runs by options, numbers and seeds, and say why none is left."""

import pytest

from fedexp.compare.picks import pick_runs, with_rounds
from fedexp.core.errors import ConfigError
from fedexp.report.read.runs import collect_runs


@pytest.fixture
def runs(make_run, tmp_path):
    made = [
        make_run(str(number), seed=number, choices={"aggregator": rule}, keys={"local.lr": rate})
        for number, (rule, rate) in enumerate((("fedavg", 0.1), ("krum", 0.1), ("krum", 0.25)))
    ]
    folder = made[-1]
    (folder / "metrics.csv").write_text("")
    (folder / "traceback.txt").write_text("fedexp.core.errors.RunError: 2f + 2 < n\n")
    return [run for found in collect_runs([tmp_path]) for run in found]


@pytest.mark.parametrize(
    ("wishes", "seeds"),
    [({"aggregator": "krum"}, [1, 2]), ({"local.lr": "1e-1"}, [0, 1]), ({"seed": "2"}, [2]), ({}, [0, 1, 2])],
)
def test_runs_are_picked_by_what_would_be_typed(runs, tmp_path, wishes, seeds):
    assert [run.seed for run in pick_runs(runs, [tmp_path], wishes)] == seeds


def test_what_no_run_has_is_told_with_what_there_is(runs, tmp_path):
    with pytest.raises(ConfigError, match=r"has seed=7; there: 0, 1, 2$"):
        pick_runs(runs, [tmp_path], {"seed": "7"})


def test_picked_runs_that_all_failed_are_told_with_the_reason(runs, tmp_path):
    with pytest.raises(
        ConfigError, match=r"^none of the 1 run\(s\) that are picked has finished a round: 2f \+ 2 < n$"
    ):
        with_rounds(pick_runs(runs, [tmp_path], {"local.lr": "0.25"}))
    assert [run.seed for run in with_rounds(runs)] == [0, 1]
