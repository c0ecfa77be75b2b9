"""What a report says of methods that were not run under the same conditions."""

from collections.abc import Callable
from pathlib import Path

from fedexp.report.read import methods, runs
from fedexp.report.topics import provenance
from fedexp.report.topics.unequal import unequal_conditions


def notes(folder: Path) -> list[str]:
    return list(unequal_conditions(methods.group_runs(runs.collect_runs([folder])[0])))


def test_equal_conditions_are_not_spoken_of(make_run: Callable[..., Path], tmp_path: Path):
    for number in range(2):
        make_run(str(number), choices={"selector": f"s{number}"}, keys={"evaluation.personal_fraction": 0.2})
    assert notes(tmp_path) == []


def test_examples_held_out_by_some(make_run: Callable[..., Path], tmp_path: Path):
    for number, fraction in enumerate((0.0, 0.2, 0.2)):
        make_run(str(number), choices={"selector": f"s{number}"}, keys={"evaluation.personal_fraction": fraction})
    assert notes(tmp_path) == [
        "They do not train on the same examples: evaluation.personal_fraction is 0 for s0 and 0.2 for s1, s2. Set it "
        "alike for all."
    ]
    grouped = methods.group_runs(runs.collect_runs([tmp_path])[0])
    assert provenance.caveats(grouped, [])[0].startswith("They do not train on the same examples")


def test_steps_of_another_kind_and_number(make_run: Callable[..., Path], tmp_path: Path):
    make_run("0", choices={"selector": "random"}, keys={"rounds": 4})
    make_run("1", choices={"selector": "random", "pacing": "buffered"}, keys={"rounds": 40})
    fewer, kind = notes(tmp_path)
    assert fewer.startswith("They do not train for as many rounds: rounds is 4 for ")
    assert kind.startswith("A round is not the same for all: pacing is synchronous for ")


def test_of_many_methods_some_are_named(make_run: Callable[..., Path], tmp_path: Path):
    for number in range(7):
        make_run(str(number), choices={"selector": f"s{number}"}, keys={"rounds": 1 if number else 2})
    assert notes(tmp_path)[0].endswith("rounds is 2 for s0 and 1 for s1, s2, s3, s4 and 2 more.")
