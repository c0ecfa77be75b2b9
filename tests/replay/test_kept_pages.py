from pathlib import Path

import pytest

from fedexp.replay import catalog, overview
from fedexp.replay.page import JudgedCell
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.replay.verdict import Verdict
from scripts import replay_pages


def test_every_page_shows_what_the_results_say(capsys: pytest.CaptureFixture[str]):
    assert replay_pages.main(["--check"]) == 0, capsys.readouterr().out


def test_every_folder_of_results_is_that_of_a_table_and_has_a_page():
    folders = {path.parent for path in replay_pages.KEPT.glob("*/results.csv")}
    assert {folder.name for folder in folders} <= set(catalog.names())
    assert all((folder / "README.md").is_file() for folder in folders)
    assert folders


def test_every_folder_has_a_page_that_is_made_again():
    """Also that of a table of which nothing was run."""
    made = {path.parent for path in replay_pages.pages()}
    assert {path.parent for path in replay_pages.KEPT.glob("*/README.md")} <= made
    assert replay_pages.KEPT / "selection_thesis" in made


def test_a_cell_that_differs_says_what_was_tried():
    judged = [cell for line in overview.read_progress(replay_pages.KEPT) for cell in line.judged_cells]
    silent = [cell.cell.name for cell in judged if cell.verdict.outcome == "differs" and not cell.cell.note]
    assert silent == []


def test_the_cheapest_results_of_several_tables_are_taken(monkeypatch: pytest.MonkeyPatch):
    def some(name: str, *seconds: float) -> overview.TableProgress:
        cell = Cell("a", (), CellQuantity.parse("test_accuracy", ""), 9)
        found = [Result("a", seed, "x", 0.5, 2, "d", took, "here", "c") for seed, took in enumerate(seconds)]
        return overview.TableProgress(PublishedTable(name, "", "", ()), [JudgedCell(cell, found, Verdict("agrees"))])

    held = [some("long", 9.0), some("short", 3.0, 1.0, 2.0), some("none")]
    monkeypatch.setattr(overview, "read_progress", lambda _: held)
    assert [(name, one.seconds) for name, one in replay_pages.cheapest(3)] == [
        ("short", 1.0), ("short", 2.0), ("long", 9.0),
    ]  # fmt: skip


def test_results_run_again_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With every fault that comes back the command fails; without the data nothing is run."""
    told: list[list[str]] = [["a differs"], []]
    monkeypatch.setattr(replay_pages.recheck, "run_again", lambda *_: told.pop())
    monkeypatch.setattr(replay_pages, "data_root", lambda: tmp_path)
    assert replay_pages.main(["--again", "1"]) == 0
    assert len(told) == 2
    (tmp_path / "MNIST").mkdir()
    assert replay_pages.main(["--again", "1"]) == 0
    assert replay_pages.main(["--again", "1"]) == 1
