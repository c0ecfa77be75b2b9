from fedexp.replay import overview, page
from fedexp.replay.page import JudgedCell
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.results import Result
from fedexp.replay.table import Cell
from fedexp.replay.verdict import Verdict
from scripts.replay_pages import describe_share_inside, verdict_grid


def cell(name: str, seeds: int, minutes: float | None) -> Cell:
    return Cell(name, (f"x={name[0]}",), CellQuantity.parse("test_accuracy", ""), seeds, minutes=minutes)


def run(seconds: float, seed: int = 0) -> Result:
    return Result("a", seed, "x", 0.5, 2, "d", seconds, "here", "c")


HELD = [
    overview.TableProgress("first", "numbers", [
        JudgedCell(cell("a", 4, 30.0), [run(120.0), run(240.0, 1)], Verdict("inside")),
        JudgedCell(cell("b", 2, 90.0), [], Verdict("not run")),
    ]),
    overview.TableProgress("second", "others", [
        JudgedCell(cell("c", 1, None), [run(1.0), run(1.0, 1)], Verdict("outside")),
    ]),
]  # fmt: skip


def test_what_is_missing_is_counted_by_hand():
    # a: two of four are there, which took 3 minutes each; b: two of 90 minutes
    first, second = HELD
    assert (first.total_runs, first.done) == (6, 2)
    assert first.hours == (2 * 3 + 2 * 90) / 60
    assert (second.total_runs, second.done, second.hours) == (1, 1, 0.0)


def test_several_numbers_of_a_run_are_one_run():
    one, other = cell("a, accuracy", 3, 10.0), cell("a, epsilon", 3, 10.0)
    held = [
        JudgedCell(one, [run(60.0), run(60.0, 1)], Verdict("inside")),
        JudgedCell(other, [run(60.0)], Verdict("inside")),
    ]
    table = overview.TableProgress("t", "both", held)
    assert (table.total_runs, table.done, table.hours) == (3, 1, 2 / 60)  # the second lacks a number, the third both


def test_the_verdicts_of_all_tables_are_added_up():
    rows = verdict_grid(HELD).rows
    assert [list(row) for row in rows] == [
        ["first", "2", "1", "0", "0", "0", "0", "1"],
        ["second", "1", "0", "1", "0", "0", "0", "0"],
        ["all", "3", "1", "1", "0", "0", "0", "1"],
    ]
    new = overview.TableProgress("third", "new", [JudgedCell(cell("d", 3, 1.0), [], Verdict("not run"))])
    assert [list(row)[:2] for row in verdict_grid([*HELD, new, new]).rows][2:] == [
        ["2 not begun", "2"],
        ["all", "5"],
    ]
    assert describe_share_inside(HELD) == "Cells that were run against a published number: 2; inside: 1 (50 %)."
    assert describe_share_inside([]) == "Cells that were run against a published number: 0; inside: 0."


def test_the_list_shows_runs_and_hours():
    row = dict(zip(overview.progress_grid(HELD).headings, overview.progress_grid(HELD).rows[0], strict=True))
    assert (row["table"], row["about"], row["runs"], row["hours left"]) == ("first", "numbers", "2 of 6", "3.1")


def test_a_few_minutes_are_not_called_none():
    short = overview.TableProgress("short", "", [JudgedCell(cell("a", 2, 1.0), [], Verdict("not run"))])
    place = overview.progress_grid([]).headings.index("hours left")
    assert [row[place] for row in overview.progress_grid([short, HELD[1]]).rows] == ["< 0.1", "0.0"]


def test_one_cell_is_no_plural():
    assert page.describe_counts(HELD[1].judged_cells) == "1 cell: 1 outside"
    assert page.describe_counts(HELD[0].judged_cells) == "2 cells: 1 inside, 1 not run"
