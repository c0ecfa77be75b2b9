from pathlib import Path

import pytest

from fedexp.replay import overview, shelf
from scripts import replay_pages


def test_every_page_shows_what_the_results_say(capsys: pytest.CaptureFixture[str]):
    assert replay_pages.main(["--check"]) == 0, capsys.readouterr().out


def test_every_folder_of_results_is_that_of_a_table_and_has_a_page():
    folders = {path.parent for path in replay_pages.KEPT.glob("*/results.csv")}
    assert {folder.name for folder in folders} <= set(shelf.names())
    assert all((folder / "README.md").is_file() for folder in folders)
    assert folders


def test_a_cell_that_is_outside_says_what_was_tried():
    judged = [cell for line in overview.lines(replay_pages.KEPT) for cell in line.judged]
    silent = [cell.cell.name for cell in judged if cell.verdict.word == "outside" and not cell.cell.note]
    assert silent == []


def test_the_cheapest_results_are_taken():
    chosen = replay_pages.cheapest(3)
    every = [one.seconds for line in overview.lines(replay_pages.KEPT) for cell in line.judged for one in cell.found]
    assert [result.seconds for _, result in chosen] == sorted(every)[:3]


def test_results_run_again_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With every fault that comes back the command fails; without the data nothing is run."""
    told: list[list[str]] = [["a differs"], []]
    monkeypatch.setattr(replay_pages.again, "run_again", lambda *_: told.pop())
    monkeypatch.setattr(replay_pages, "data_root", lambda: tmp_path)
    assert replay_pages.main(["--again", "1"]) == 0
    assert len(told) == 2
    (tmp_path / "MNIST").mkdir()
    assert replay_pages.main(["--again", "1"]) == 0
    assert replay_pages.main(["--again", "1"]) == 1
