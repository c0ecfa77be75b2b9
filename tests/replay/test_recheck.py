import os
import re
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

from fedexp import cli
from fedexp.core.errors import RunError
from fedexp.replay import catalog, results
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.recheck import difference
from fedexp.replay.results import Result

BEFORE = Result("a", 1, "x", 0.5, 2, "d1", 1.0, "here", "c")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({"seconds": 9.0, "commit": "other"}, None),
        ({"digest": "d2"}, "a, seed 1: the models differ; 0.5 then, 0.5 now"),
        ({"digest": "d2", "made_by": "there"}, None),
        (
            {"digest": "d2", "made_by": "there", "value": 0.6},
            "a, seed 1: 0.5 then, 0.6 now; then by here, now by there",
        ),
        ({"digest": "d2", "made_by": "there", "value": 0.505}, None),  # other sums, within 0.006
        ({"digest": "d2", "value": 0.5015}, "a, seed 1: the models differ; 0.5 then, 0.5015 now"),
        ({"value": None}, "a, seed 1: the models differ; 0.5 then, not reached now"),
    ],
)
def test_what_counts_as_a_difference(changes, told):
    assert difference(BEFORE, Result(**{**vars(BEFORE), **changes}), CellQuantity.parse("test_accuracy", "")) == told


@pytest.mark.parametrize(
    ("measure", "then", "now", "alike"),
    [
        ("roa@0.9", 5.0, 6.0, True),  # by one round
        ("roa@0.9", 5.0, 7.0, False),
        ("roa@0.9", 400.0, 419.0, True),  # by 5 in 100
        ("roa@0.9", 400.0, 422.0, False),
        ("roa@0.9", 100.0, None, True),  # in the last round, or in the one after it
        ("roa@0.9", 90.0, None, False),
        ("test_loss", 2.0, 2.003, True),  # by 2 in 1000
        ("test_loss", 2.0, 2.015, False),
        ("clustering.clusters", 3.0, 4.0, False),
    ],
)
def test_how_far_another_machine_may_be_off(measure: str, then: float, now: float | None, alike: bool):
    before = Result(**{**vars(BEFORE), "value": then, "rounds": 100})
    after = Result(**{**vars(before), "value": now, "digest": "d2", "made_by": "there"})
    assert (difference(before, after, CellQuantity.parse(measure, "")) is None) == alike


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The results of a table of two cells."""
    (tmp_path / "conf" / "replay").mkdir(parents=True)
    cells = "".join(f"  - {{name: n{n}, overrides: [rounds={n}], published: null, seeds: 1}}\n" for n in (1, 2))
    words = "overrides: [scenario.clients=3, scenario.participants=2, engine.workers=1, pictures=false]\n"
    text = f"source: s\nabout: a\nmeasure: test_loss\n{words}cells:\n{cells}"
    (tmp_path / "conf" / "replay" / "small.yml").write_text(text)
    monkeypatch.setattr(catalog, "tables_dir", lambda: tmp_path / "conf" / "replay")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["replay", "small"]) == 0
    capsys.readouterr()
    return Path("outputs/replay/small") / results.NAME


def test_lines_are_run_again(held: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["verify", str(held), "--all"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 lines run again, 2 as they were written"


def test_a_line_that_was_changed_is_told(held: Path, capsys: pytest.CaptureFixture[str]):
    lines = held.read_text().splitlines()
    cells = lines[2].split(",")
    held.write_text("\n".join([*lines[:2], ",".join([*cells[:3], "0.123", *cells[4:]])]) + "\n")
    assert cli.main(["verify", str(held), "--rounds", "2"]) == 1
    said = capsys.readouterr()
    assert "n2, seed 0: the models differ; 0.123 then, " in said.err
    assert "2 of 2 lines run again, 1 as they were written" in said.out


def test_a_line_that_says_it_was_made_elsewhere_is_within_rounding_only(held: Path, capsys: pytest.CaptureFixture[str]):
    head, first, second = held.read_text().splitlines()
    cells = first.split(",")
    better = ",".join([*cells[:3], repr(float(cells[3]) + 1e-4), *cells[4:]])
    held.write_text("\n".join([head, re.sub('torch[^,"]*', "torch 9.9", better), second]) + "\n")
    assert cli.main(["verify", str(held), "--all"]) == 3
    assert capsys.readouterr().err.endswith(" is as it was written within rounding, not bit by bit\n")


def test_lines_of_other_cells_are_counted_and_not_run_again(held: Path, capsys: pytest.CaptureFixture[str]):
    """Of one cell that was changed since, and of two that the table no longer has."""
    head, first, second = held.read_text().splitlines()
    kept = [first.replace("n1,0,", "gone,0,"), first.replace("n1,0,", "gone,1,")]
    cells = second.split(",")
    held.write_text("\n".join([head, first, ",".join([*cells[:2], "00000000", *cells[3:]]), *kept]) + "\n")
    assert cli.main(["verify", str(held), "--all"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "lines not run again: 1 whose cell was changed since, 2 whose cell small no longer has"
    assert said[-1] == "1 of 1 lines run again, 1 as they were written"


@pytest.mark.parametrize(("value", "code"), [("0.123", 1), (None, 0)])
def test_what_a_stranger_wrote_cannot_steer_the_terminal(
    held: Path, value: str | None, code: int, capsys: pytest.CaptureFixture[str]
):
    """Neither in a complaint nor in what is said besides; the page shows it as text."""
    head, *lines = held.read_text().splitlines()
    cells = lines[0].split(",")
    cells[3] = value or cells[3]
    maker = "\x1b[2J<b>elsewhere</b>\x9b"
    rest = lines[0].rpartition('"')[2]
    held.write_text("\n".join([head, ",".join([*cells[:7], f'"{maker}"']) + rest]) + "\n")
    assert cli.main(["verify", str(held), "--all"]) == code
    said = "".join(capsys.readouterr())
    assert "\\x1b[2J<b>elsewhere</b>\\x9b" in said
    assert cli.main(["replay", "small", "--seeds", "0"]) == 0
    page = held.with_name("README.md").read_text()
    assert "made by \\x1b\\[2J\\<b>elsewhere\\</b>\\x9b" in page
    assert not {"\x1b", "\x9b"} & set(said + page)


def test_a_table_in_the_folder_is_not_asked(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]):
    """A folder that came from elsewhere may be called like a file that lies in it."""
    folder = tmp_path / "evil.yml"
    folder.mkdir()
    (folder / "evil.yml").write_text("source: s\nabout: a\ncells: []\n")
    (folder / results.NAME).write_text(",".join(results.COLUMNS) + "\n")
    monkeypatch.chdir(folder)
    assert cli.main(["verify", results.NAME]) == 2
    assert "must lie in a folder called like a table, one of " in capsys.readouterr().err


def own(held: Path) -> list[str]:
    """The words that verify the results with a table of one's own, which is no longer among those of the package."""
    Path("conf/replay/small.yml").rename("mine.yml")
    return ["verify", str(held), "--table", "mine.yml", "--rounds", "1"]


def test_results_of_a_table_of_ones_own_are_run_again(held: Path, capsys: pytest.CaptureFixture[str]):
    """It must be named: what lies beside the results, or has their name, is not asked."""
    words = own(held)
    assert cli.main(words[:2]) == 2
    assert "for a table of your own add --table FILE.yml" in capsys.readouterr().err
    assert cli.main(words) == 0
    assert "1 of 2 lines run again, 1 as they were written" in capsys.readouterr().out


def test_a_line_that_cannot_be_run_again_names_no_folder_that_is_gone(
    held: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails(_: object, folder: Path) -> None:
        raise RunError(f"no room in {folder}")

    monkeypatch.setattr(import_module("fedexp.run.run"), "complete", fails)
    assert cli.main(["verify", str(held), "--rounds", "1"]) == 1
    told = capsys.readouterr().err
    assert "cannot be run again: no room in its folder" in told
    assert tempfile.gettempdir() not in told


def test_what_is_no_results_csv_is_refused(held: Path, capsys: pytest.CaptureFixture[str]):
    page = held.with_name("README.md")
    assert cli.main(["verify", str(page)]) == 2
    assert "verify needs a run folder or a results.csv, got " in capsys.readouterr().err
    assert cli.main(["verify", str(held.parent), "--table", "mine.yml"]) == 2
    assert "--table goes with a results.csv, got the folder" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_no_results_csv(held: Path, capsys: pytest.CaptureFixture[str]):
    held.unlink()
    os.mkfifo(held)
    assert cli.main(["verify", str(held)]) == 2
    told = capsys.readouterr().err.strip()
    assert told.endswith("results.csv must be a file of its own, but it is a pipe; remove it")
