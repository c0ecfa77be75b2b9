from dataclasses import replace
from pathlib import Path

import pytest

from fedexp import cli
from fedexp.replay import overview, page, table
from fedexp.replay.page import JudgedCell
from fedexp.replay.published import Published
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.replay.verdict import Verdict
from scripts.replay_pages import describe_agreement, source_grid

PUBLISHED = Path(__file__).parents[2] / "scripts" / "replays"


def cell(name: str, seeds: int = 1, minutes: float | None = None, explained: str = "", number: str = "") -> Cell:
    quantity = CellQuantity.parse("test_accuracy", "")
    words = (f"x={name[0]}",)
    return Cell(name, words, quantity, seeds, Published(0.5), minutes=minutes, explained=explained, number=number)


def run(seconds: float, seed: int = 0) -> Result:
    return Result("a", seed, "x", 0.5, 2, "d", seconds, "here", "c")


def progress(name: str, label: str, *cells: JudgedCell) -> overview.TableProgress:
    return overview.TableProgress(PublishedTable(name, "", "numbers", (), label=label), cells)


OWN = replace(cell("own"), published=None)
HELD = [
    progress(
        "first", "A",
        JudgedCell(cell("a", 4, 30.0), [run(120.0), run(240.0, 1)], Verdict("so far")),
        JudgedCell(cell("b", 2, 90.0), [], Verdict("not run")),
        JudgedCell(cell("c", explained="d"), [run(1.0)], Verdict("differs")),
        JudgedCell(cell("d"), [run(1.0)], Verdict("agrees")),
    ),
    progress(
        "second", "B",
        JudgedCell(cell("e", number="one"), [run(1.0)], Verdict("differs")),
        JudgedCell(cell("f", number="one"), [run(1.0)], Verdict("agrees")),
        JudgedCell(OWN, [run(1.0)], Verdict("no number")),
    ),
    progress("third", "A", JudgedCell(cell("g"), [run(1.0)], Verdict("differs"))),
    progress("fourth", "C", JudgedCell(OWN, [], Verdict("not run"))),
]  # fmt: skip


ONLY_PLANNED = progress("fifth", "D", JudgedCell(cell("h"), [], Verdict("not run")))


def test_what_is_missing_is_counted_by_hand():
    # a: two of four are there, which took 3 minutes each; b: two of 90 minutes
    first, second = HELD[:2]
    assert (first.total_runs, first.done) == (8, 4)
    assert first.hours == (2 * 3 + 2 * 90) / 60
    assert (second.total_runs, second.done, second.hours) == (3, 3, 0.0)


def test_several_numbers_of_a_run_are_one_run():
    one, other = cell("a, accuracy", 3, 10.0), cell("a, epsilon", 3, 10.0)
    table = progress(
        "t", "A",
        JudgedCell(one, [run(60.0), run(60.0, 1)], Verdict("agrees")),
        JudgedCell(other, [run(60.0)], Verdict("agrees")),
    )  # fmt: skip
    assert (table.total_runs, table.done, table.hours) == (3, 1, 2 / 60)  # the second lacks a number, the third both


def test_numbers_are_added_up_by_source():
    """Tables of a source together; one number for two settings that try for it; what is our own apart."""
    grid = source_grid(HELD)
    assert list(grid.headings)[:6] == [
        "source",
        "published",
        "run",
        "agree",
        "differ, explained",
        "differ, open",
    ]
    assert [list(row)[:6] for row in grid.rows] == [
        ["A", "5", "3", "1", "1", "1"],
        ["B", "1", "1", "1", "0", "0"],
        ["all", "6", "4", "2", "1", "1"],
    ]
    assert [list(row)[:3] for row in source_grid([*HELD, ONLY_PLANNED], is_short=True).rows][-2:] == [
        ["1 other", "1", "0"],
        ["all", "7", "4"],
    ]
    assert describe_agreement(HELD) == (
        "Published numbers with all their seeds: 4; 2 agree (50 %). Where several settings\n"
        "were tried for one number, the best counts: so 1 of these 1 agree, and 1 of the 3 with one so far.\n"
        "If all were right, about 0 of these would differ by chance, and fewer of the others. *Explained*: one\n"
        "change of setting, which the page names, makes it agree. Of the 2 that differ, 0 have another setting with\n"
        "seeds still to run. Begun, without a verdict so far: 1."
    )
    assert describe_agreement([]).startswith("Published numbers with all their seeds: 0; 0 agree. Where")


def test_a_number_that_differs_may_have_a_setting_that_is_still_to_run():
    differs = JudgedCell(cell("i", number="one"), [run(1.0)], Verdict("differs"))
    others = (JudgedCell(cell("j", number="one"), [], Verdict("not run")), HELD[2].judged_cells[0])
    assert "Of the 2 that differ, 1 have another setting" in describe_agreement([progress("a", "A", differs, *others)])


def test_the_list_shows_runs_and_hours():
    grid = overview.progress_grid(HELD)
    row = dict(zip(grid.headings, grid.rows[0], strict=True))
    assert (row["table"], row["about"], row["runs"], row["hours left"]) == ("first", "numbers", "4 of 8", "3.1")
    assert (row["numbers"], row["measurements"], row["differs"]) == ("4", "0", "1")
    assert grid.rows[1][2:4] == ["1", "1"]


def test_a_few_minutes_are_not_called_none():
    short = progress("short", "A", JudgedCell(cell("a", 2, 1.0), [], Verdict("not run")))
    position = overview.progress_grid([]).headings.index("hours left")
    assert [row[position] for row in overview.progress_grid([short, HELD[1]]).rows] == ["< 0.1", "0.0"]


def test_one_cell_is_no_plural():
    assert page.describe_counts(HELD[2].judged_cells) == "1 published number: 1 differs"
    assert page.describe_counts(HELD[1].judged_cells) == (
        "1 published number: 1 agrees; 1 measurement of our own, 1 with at least one run"
    )


def test_seeds_beyond_those_planned_change_no_verdict():
    one = cell("a", 2)
    table = PublishedTable("t", "", "", (one,))
    results = [
        Result("a", seed, one.fingerprint, value, 2, "d", 1.0, "here", "c")
        for seed, value in enumerate([0.5, 0.5, 9.0])
    ]
    (judged,) = page.judge_cells(table, results)
    assert (len(judged.results), judged.verdict.outcome, judged.verdict.mean) == (2, "agrees", 0.5)


@pytest.mark.parametrize("label", ["A", "B"])
def test_cells_of_two_tables_may_have_the_same_name(label: str):
    same = cell("no privacy")
    tables = [
        progress("one", "A", JudgedCell(same, [run(1.0)], Verdict("agrees"))),
        progress("other", label, JudgedCell(same, [run(1.0)], Verdict("differs"))),
    ]
    assert list(source_grid(tables).rows[-1])[:4] == ["all", "2", "2", "1"]


def test_the_commands_of_a_long_page_have_a_page_of_their_own(monkeypatch: pytest.MonkeyPatch):
    chosen = table.load("copied_tables")
    lines = page.judge_cells(chosen, [])
    (whole,) = page.documents(chosen, lines, "kept").values()
    monkeypatch.setattr(page, "MOST_LETTERS", len(whole) - 1)
    texts = page.documents(chosen, lines, "kept")
    assert list(texts) == ["README.md", "commands.md"]
    assert "## Commands" in whole
    assert "(commands.md)" in texts["README.md"]
    assert texts["commands.md"].partition("## Commands")[2].strip() in whole


def test_where_nothing_was_run_it_says_where_our_results_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["replay"]) == 0
    said = capsys.readouterr().out
    assert "These count the runs in outputs/replay, where there is none. Ours lie in " in said
    assert cli.main(["replay", "--into", str(PUBLISHED)]) == 0
    assert "where there is none" not in capsys.readouterr().out
