"""The study of pacings: its fleets, what is measured of a run, and its page, by hand."""

import csv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from optuna.trial import TrialState
from script_modules import imported

from fedexp.contest.methods import read_methods
from fedexp.parts.fleet.trace import read_trace
from fedexp.report.read import runs

FOLDER = Path(__file__).parents[1] / "scripts" / "studies" / "pacing"


@pytest.fixture
def study() -> Iterator[list[ModuleType]]:
    """What runs and collects it, what makes its fleets, and what makes its page."""
    with imported(FOLDER, "study", "fleets", "page") as found:
        yield found


def line(method: str, seed: int, accuracy: float, seconds: str, **cells: str) -> dict[str, str]:
    """A line of results."""
    empty = dict.fromkeys(
        ("fleet", "words", "slow", "fast", "share_of_slow", "megabytes_1", "seconds_2", "megabytes_2"), ""
    )
    return {**empty, "method": method, "seed": f"{seed}", "accuracy": f"{accuracy}", "seconds_1": seconds, **cells}


def test_the_page_is_made_again(study: list[ModuleType]):
    assert (FOLDER / "README.md").read_text() == study[2].text(FOLDER)


def test_a_trial_that_still_runs_is_no_failed_one(study: list[ModuleType], tmp_path: Path, monkeypatch):
    (tmp_path / "search" / "fedbuff").mkdir(parents=True)
    states = enumerate((TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING))
    trials = [SimpleNamespace(number=number, state=state, value=0.5, params={"lr": 0.1}) for number, state in states]
    method = SimpleNamespace(name="FedBuff", folder="fedbuff")
    plan = SimpleNamespace(methods=[method], search=lambda method: None)
    monkeypatch.setattr(study[0], "contest_plan", lambda folder: plan)
    monkeypatch.setattr(study[0], "MethodTrials", lambda *given: SimpleNamespace(trials=lambda: trials))
    lines = list(study[0].collect_trials("even", tmp_path))
    assert lines == [["even", "FedBuff", "0", "lr=0.1", "0.5000"], ["even", "FedBuff", "1", "lr=0.1", ""]]


def test_the_fleets_are_made_again(study: list[ModuleType]):
    for fleet in study[1].SIGMA:
        assert (FOLDER / f"{fleet}.csv").read_text() == study[1].text(fleet)
        assert read_trace(FOLDER / f"{fleet}.csv").speed == pytest.approx(study[1].speeds(fleet), rel=1e-5)
    assert set(study[1].SIGMA) == set(study[2].FLEETS)


def test_speeds_are_the_same_in_another_order(study: list[ModuleType]):
    even, mixed, harsh, tied = (study[1].speeds(fleet) for fleet in ("even", "mixed", "harsh", "tied"))
    assert even.tolist() == [9.0] * 100
    assert np.sort(harsh) == pytest.approx(np.sort(tied))
    assert np.median(mixed) == pytest.approx(9, rel=0.01)
    assert np.log(harsh / 9).std() == pytest.approx(2 * np.log(mixed / 9).std())
    by_class = tied.reshape(10, 10)  # client number by its first class
    assert (by_class.min(axis=0)[:-1] > by_class.max(axis=0)[1:]).all()


def test_every_method_can_compete(study: list[ModuleType]):
    """All share the words and the search of the rate, and no key of a method's own is forgotten in the tables."""
    words = study[0].command("mnist", "harsh", 1)
    methods, shared = read_methods([str(FOLDER / "methods.yaml"), *(word for word in words if "=" in word)])
    assert methods[0].name == study[2].FIRST
    assert [word for word in shared if "interval" in word] == [study[0].RATE]
    own = [[word for word in method.words if "interval(" in word or "range(" in word] for method in methods]
    assert max(map(len, own)) == 1
    searched = [word for words in own for word in words]
    assert {word.partition("=")[0] for word in searched} >= {"pacing.uploads", "pacing.period_s", "fleet.deadline_s"}
    for word in (study[0].RATE, *searched):
        assert word.startswith(study[0].TUNED)


def test_a_run_by_hand(study: list[ModuleType], tmp_path: Path):
    """Six looks 40 s apart with 2 MB each; 1 and 2 are the slow; 0.9 is never met.

    0.5 is met at the fourth, which is the second of its minute, so that the fifth counts.
    """
    head = "round,test_accuracy,mb_down,mb_up,sim_s\n"
    accuracy = (0.1, 0.3, 0.4, 0.6, 0.5, 0.8)
    rows = "".join(f"{number + 1},{value},1,1,{40 * number + 40}\n" for number, value in enumerate(accuracy))
    (tmp_path / "metrics.csv").write_text(head + rows)
    (tmp_path / "clients.csv").write_text("round,client,examples\n1,0,9\n1,1,9\n2,0,9\n3,2,9\n")
    (tmp_path / "confusion_matrix.csv").write_text("true class,0,1\n0,8,2\n1,6,4\n")
    (tmp_path / "federation.csv").write_text("client,examples,0,1\n0,9,9,0\n1,9,0,9\n2,18,9,9\n")
    result = runs.read(tmp_path)
    assert result is not None
    groups = study[0].ClientGroups(np.array([1, 2]), np.array([0]))
    cells = study[0].measure(result, groups, (0.5, 0.9))
    # of 27 examples at the slow 9 are of class 0: (9 * 0.8 + 18 * 0.4) / 27
    assert cells == ["0.8000", "0.5333", "0.8000", "0.5000", "4", "6", "12", "200", "10", "", ""]
    assert study[0].regular_looks(np.array([np.nan, 0.1, np.nan, 0.2]), np.array([10, 50, 70, 80])).tolist() == [1, 3]
    alike = study[0].measure(result, study[0].ClientGroups(np.zeros(0, int), np.zeros(0, int)), (0.5, 0.9))
    assert alike[1:4] == ["", "", ""]


def test_ratios_and_intervals_by_hand(study: list[ModuleType]):
    """Half, a quarter and half of the time: e^(log(1/16) / 3) = 0.397; the fourth did not get there and is no pair."""
    first = [line("synchronous", seed, 0.4 + seed / 10, s) for seed, s in enumerate(("100", "400", "80", ""))]
    fast = [line("FedBuff", seed, 0.6, s) for seed, s in enumerate(("50", "100", "40", "70"))]
    page = study[2]
    spread = np.log([2, 4, 2]).std(ddof=1) * 4.302653 / 3**0.5
    low, high = np.exp(np.log(1 / 16) / 3 + spread * np.array([-1, 1]))
    assert page.ratio(fast, first) == f"0.40 ({low:.2f} to {high:.2f}, 3 of 4)"
    assert page.ratio(fast[:1], first) == "0.50"
    assert page.ratio(fast[2:], first) == "0.50 (1 of 2)"
    assert page.reached(first, "seconds_1") == "3 of 4"
    assert page.reached(fast[:2], "seconds_1") == "75"
    assert page.mean([0.5, 0.7, 0.6], ".3f") == "0.600 (0.352 to 0.848)"  # 4.303 * 0.1 / sqrt(3)
    grid = page.results({"synchronous": first, "FedBuff": fast}, (0.6, 0.8))
    assert grid.rows[1][:3] == ["FedBuff", "4", "0.600 (0.600 to 0.600)"]
    assert grid.rows[1][-1] == page.ratio(fast, first)
    assert [len(row) for row in grid.rows] == [len(grid.headings)] * 2


def test_the_tuning_is_told(study: list[ModuleType]):
    trials = [{"words": f"lr={value}", "validation_accuracy": value} for value in ("0.5", "", "0.7", "0.2")]
    assert study[2].tuning({"FedBuff": trials}).rows == [["FedBuff", "lr=0.7", "4", "1", "0.700", "0.500", "0.200"]]


def test_tables_have_their_columns(study: list[ModuleType]):
    for dataset in study[2].SETTINGS:
        for name, columns in ((dataset, study[2].COLUMNS), (f"{dataset}_trials", study[2].TRIAL_COLUMNS)):
            path = FOLDER / f"{name}.csv"
            if path.is_file():
                with path.open(newline="") as file:
                    assert tuple(next(csv.reader(file))) == columns


def test_a_fleet_that_was_not_run_here_keeps_its_lines(study: list[ModuleType], tmp_path: Path):
    path = tmp_path / "mnist.csv"
    study[0].write(path, ("fleet", "seed"), {"tied": [["tied", "1"]], "even": [["even", "1"]]})
    study[0].write(path, ("fleet", "seed"), {"even": [["even", "2"], ["even", "3"]]})
    assert path.read_text() == "fleet,seed\neven,2\neven,3\ntied,1\n"
