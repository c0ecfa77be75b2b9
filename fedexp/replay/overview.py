"""An overview of the tables: how many runs each has and needs, how long the others would take, and the verdicts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fedexp.replay import catalog, page, results
from fedexp.replay.page import JudgedCell
from fedexp.replay.table import PublishedTable, load
from fedexp.report.draw.markdown import Grid

CORE_HOURS = 2.0  # of a run: longer ones are left to a GPU


@dataclass(frozen=True)
class TableProgress:
    """A table, and how much of it has been run."""

    table: PublishedTable
    judged_cells: Sequence[JudgedCell]

    @property
    def total_runs(self) -> int:
        """How many runs the table needs: several numbers of one run count once."""
        return len(self._runs)

    @property
    def done(self) -> int:
        """How many of them have all their results."""
        return sum(is_there for is_there, _ in self._runs)

    @property
    def hours(self) -> float:
        """Hours of the other runs on one core, by the cell's finished runs or else by the table's estimate."""
        return sum(minutes for is_there, minutes in self._runs if not is_there) / 60

    @property
    def needs_gpu(self) -> bool:
        """Whether a run that is missing takes so long on a core that it is left to a GPU."""
        missing = self.total_runs - self.done
        return missing > 0 and self.hours / missing > CORE_HOURS

    @cached_property
    def _runs(self) -> list[tuple[bool, float]]:
        return runs(self.judged_cells)


def runs(
    cells: Iterable[JudgedCell], minutes: Callable[[JudgedCell], float | None] = page.minutes_per_run
) -> list[tuple[bool, float]]:
    """For every run that these cells need: whether all its numbers are there, and its minutes."""
    runs_by_words: dict[tuple[str, ...], tuple[bool, float]] = {}
    for judged_cell in cells:
        seeds = {result.seed for result in judged_cell.results}
        for seed in range(judged_cell.cell.seeds):
            run = tuple(judged_cell.cell.words(seed))
            all_there, most = runs_by_words.get(run, (True, 0.0))
            runs_by_words[run] = all_there and seed in seeds, max(most, minutes(judged_cell) or 0.0)
    return list(runs_by_words.values())


def read_progress(into: Path) -> list[TableProgress]:
    """Reads every table of the package, with its results in a folder."""
    return [
        TableProgress(published_table, page.judge_cells(published_table, results.read(into / published_table.name)))
        for published_table in map(load, catalog.names())
    ]


def progress_grid(all_tables: Sequence[TableProgress], *, is_short: bool = False) -> Grid:
    """A row for each table: what it is about, if the grid is not short, runs, hours and outcomes."""
    about = [] if is_short else ["about"]
    head = ["table", *about, "numbers", "measurements", "runs", "hours left", *page.OUTCOMES]
    rows = [[line.table.name, *([] if is_short else [line.table.about]), *_counts(line)] for line in all_tables]
    return Grid(head, rows, texts=1 + len(about))


def _counts(line: TableProgress) -> list[str]:
    published, measured = len(page.numbers(line.judged_cells)), len(page.measurements(line.judged_cells))
    outcomes = map(str, page.count_outcomes(line.judged_cells).values())
    return [str(published), str(measured), f"{line.done} of {line.total_runs}", _hours(line.hours), *outcomes]


def _hours(hours: float) -> str:
    """Formats hours with one decimal; a positive rest is never shown as 0."""
    return "< 0.1" if 0 < hours < 0.05 else f"{hours:,.1f}"
