"""The laws that are tried on public programs: the quadratics by hand, fedexp on them, and what the table says."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from script_modules import imported

from scripts import laws

TRIES, PROGRAMS, RUNS = laws.read_programs(laws.PROGRAM_FOLDER)


@pytest.fixture(scope="module")
def scripts() -> Iterator[list[ModuleType]]:
    with imported(laws.PROGRAM_FOLDER, "problem", "run_fedexp") as modules:
        yield modules


def end(scripts: list[ModuleType], capsys: pytest.CaptureFixture[str], *words: str) -> list[float]:
    scripts[1].main(*words)
    return json.loads(capsys.readouterr().out.splitlines()[-1])["ends_at"]


def test_the_quadratics_by_hand(scripts: list[ModuleType]):
    """At (1, 1): 1 / 2 (1 + 0) and 3 / 2 (9 + 4), with the slopes w - m and 3 (w - m)."""
    problem = scripts[0]
    model, labels = problem.PlaneModel(), torch.tensor([0, 1])
    outputs = model(torch.zeros(2, 1))
    assert outputs.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert problem.QuadraticCost(reduction="sum")(outputs, labels).item() == 0.5 + 19.5
    problem.QuadraticCost()(outputs, labels).backward()
    assert model.fc.weight.grad.tolist() == [(1 - 9) / 2, 6 / 2]


@pytest.mark.law("local=scaffold", "two quadratics end at their joint optimum (3, -0.5), to 0.001")
def test_scaffold_ends_at_the_joint_optimum(scripts: list[ModuleType], capsys: pytest.CaptureFixture[str]):
    assert end(scripts, capsys, "scaffold", "5", "50", "0.05") == pytest.approx([3, -0.5], abs=1e-3)
    assert end(scripts, capsys, "fedavg", "5", "50", "0.05")[0] < 2.99


@pytest.mark.law("local=prox", "two quadratics trained to the end, mu = 1: (2.4, -0.2), to 0.001")
def test_prox_ends_between(scripts: list[ModuleType], capsys: pytest.CaptureFixture[str]):
    """A client ends at (c m + mu w) / (c + mu), so the minima count by 1 / 2 and 3 / 4: 3 / 1.25 and -0.25 / 1.25."""
    assert end(scripts, capsys, "prox", "40", "20", "0.1") == pytest.approx([2.4, -0.2], abs=1e-3)


@pytest.mark.law("local=pfedme", "two quadratics, inner steps to the end, lambda = 1: (2.4, -0.2), to 0.001")
def test_pfedme_ends_between(scripts: list[ModuleType], capsys: pytest.CaptureFixture[str]):
    assert end(scripts, capsys, "pfedme", "1", "5", "1.5") == pytest.approx([2.4, -0.2], abs=1e-3)


def test_other_methods_end_where_fedavg_does(scripts: list[ModuleType], capsys: pytest.CaptureFixture[str]):
    methods = ("fedavg", "prox_0", "fednova", "ditto", "apfl", "mifa", "qfedavg_0")
    first, *others = [end(scripts, capsys, method, "5", "5", "0.1") for method in methods]
    assert others == [pytest.approx(first, abs=1e-6)] * 6


def test_each_line_is_of_a_law_and_a_file_of_a_program():
    methods = {
        (program, law) for program, how in PROGRAMS.items() for law in TRIES if TRIES[law]["method"] in how["files"]
    }
    assert {(run["program"], run["law"]) for run in RUNS} == methods
    assert all(run["file"] == PROGRAMS[run["program"]]["files"][TRIES[run["law"]]["method"]] for run in RUNS)
    assert all((laws.ROOT / run["file"]).is_file() for run in RUNS if run["program"] == "fedexp")
    assert all((laws.PROGRAM_FOLDER / how["driver"]).is_file() for how in PROGRAMS.values())


def test_the_table_by_hand():
    tries = {
        "base": {"law": ["local=sgd", "a base"], "method": "a"},
        "near": {"law": ["local=prox", "it ends there"], "method": "b", "ends_at": [1, -2]},
        "same": {"law": ["local=ditto", "as the base"], "method": "c", "like": "base"},
    }
    size = {"steps": 5, "rounds": 2, "rate": 0.1}
    tries = {name: how | size for name, how in tries.items()}
    programs = {"One": {"causes": {"same": "it is so"}}, "Two": {}, "Three": {"causes": {"near": "it is otherwise"}}}
    shared = {"version": "1", "file": "a_b.py", "date": "2026-01-02"}
    rows = (
        *(("One", "base", "0.5", "3", ""), ("One", "near", "1.004", "-2.0", ""), ("One", "same", "0.5", "3.1", "")),
        *(("Two", "base", "", "", "no"), ("Two", "near", "1.006", "-0.0001", ""), ("Two", "same", "1", "2", "")),
        *(("Three", "near", "1", "nan", ""), ("Four", "base", "0.5", "3", ""), ("Four", "near", "-3e9", "-2", "")),
        ("Four", "same", "", "", "KeyError: 'a|b'"),
    )
    runs = [dict(zip(("program", "law", "x", "y", "error"), row, strict=True)) | shared for row in rows]
    text = laws.program_table(tries, programs | {"Four": {}}, runs)
    cells = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if "a_b.py" in line]
    assert [(row[0].strip("| "), *row[2:4]) for row in cells] == [
        *(("One 1", "(0.500, 3.000)", "-"), ("Two 1", "-", "-"), ("Four 1", "(0.500, 3.000)", "-")),
        *(("One 1", "(1.004, -2.000)", "yes"), ("Two 1", "(1.006, 0.000)", "no")),
        *(("Three 1", "diverges", "no"), ("Four 1", "diverges", "no")),
        *(("One 1", "(0.500, 3.100)", "no"), ("Two 1", "(1.000, 2.000)", "-"), ("Four 1", "-", "-")),
    ]
    ends = ("One: it is so.", "Two: its run ended with `no`.", "Three: it is otherwise.", "Four: its run ended with")
    assert [line for line in text.splitlines() if line.startswith(ends)] == [
        *("Two: its run ended with `no`.", "Three: it is otherwise.", "One: it is so."),
        "Four: its run ended with `KeyError: 'a|b'`.",
    ]
    assert "`local=prox`: it ends there (5 steps a round, 2 rounds, rate 0.1)." in text


def test_the_last_words_of_a_run_are_its_end_or_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with imported(laws.PROGRAM_FOLDER, "run") as (run,):
        monkeypatch.setattr(run, "HERE", tmp_path)
        (tmp_path / "good.py").write_text('print("some words")\nprint(\'{"ends_at": [1.25, -3]}\')\n')
        (tmp_path / "mute.py").write_text("import os\nos._exit(3)\n")
        (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
        (tmp_path / "bad.py").write_text("import sys\nassert sys.argv[1:] == ['a'], 'no'\n")
        python = Path(sys.executable)
        assert run.run(python, "good.py", ["a"]) == ("1.25", "-3", "")
        assert run.run(python, "bad.py", ["b"]) == ("", "", "AssertionError: no")
        assert run.run(python, "mute.py", []) == ("", "", "exit code 3")
        monkeypatch.setattr(run, "LONGEST_S", 1)
        assert run.run(python, "slow.py", []) == ("", "", "stopped after 1 s")
