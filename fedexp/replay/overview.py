"""An overview of the tables: how many runs each has and needs, how long the others would take, and the verdicts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fedexp.replay import page, results, shelf, table
from fedexp.replay.page import Judged
from fedexp.report.markup import Grid


@dataclass(frozen=True)
class TableSoFar:
    """A table, and how much of it has been run."""

    name: str
    about: str
    judged: Sequence[Judged]

    @property
    def asked(self) -> int:
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

    @cached_property
    def _runs(self) -> list[tuple[bool, float]]:
        return runs(self.judged)


def runs(cells: Iterable[Judged], minutes: Callable[[Judged], float | None] = page.minutes) -> list[tuple[bool, float]]:
    """For every run that these cells need: whether all its numbers are there, and its minutes."""
    found: dict[tuple[str, ...], tuple[bool, float]] = {}
    for one in cells:
        seeds = {result.seed for result in one.found}
        for seed in range(one.cell.seeds):
            run = tuple(one.cell.words(seed))
            all_there, most = found.get(run, (True, 0.0))
            found[run] = all_there and seed in seeds, max(most, minutes(one) or 0.0)
    return list(found.values())


def lines(into: Path) -> list[TableSoFar]:
    """Reads every table of the package, with its results in a folder."""
    found = [table.load(name) for name in shelf.names()]
    return [TableSoFar(one.name, one.about, page.judged(one, results.read(into / one.name))) for one in found]


def progress(held: Sequence[TableSoFar]) -> Grid:
    """A row for each table: runs, hours and verdicts."""
    head = ["table", "about", "cells", "runs", "hours left", *page.WORDS]
    return Grid(head, [[one.name, one.about, *_numbers(one)] for one in held], texts=2)


def verdicts(held: Sequence[TableSoFar]) -> Grid:
    """A row for each table with results, one for the others and one for all: the verdicts alone."""
    others = [one for one in held if not one.done]
    named = [(one.name, [one]) for one in held if one.done] + [(f"{len(others)} not begun", others)] * bool(others)
    rows = []
    for name, tables in [*named, ("all", held)]:
        cells = [cell for one in tables for cell in one.judged]
        rows.append([name, str(len(cells)), *map(str, page.counts(cells).values())])
    return Grid(["table", "cells", *page.WORDS], rows)


def share(held: Sequence[TableSoFar]) -> str:
    """How many of the cells with a published number and results are inside, in words."""
    found = page.counts([cell for one in held for cell in one.judged])
    against = sum(found[word] for word in ("inside", "outside", "disputed", "not resolved"))
    part = f" ({100 * found['inside'] / against:.0f} %)" if against else ""
    return f"Cells that were run against a published number: {against}; inside: {found['inside']}{part}."


def _numbers(line: TableSoFar) -> list[str]:
    counted = map(str, page.counts(line.judged).values())
    return [str(len(line.judged)), f"{line.done} of {line.asked}", _hours(line.hours), *counted]


def _hours(hours: float) -> str:
    """Formats hours with one decimal; a positive rest is never shown as 0."""
    return "< 0.1" if 0 < hours < 0.05 else f"{hours:,.1f}"
