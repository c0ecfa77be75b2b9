"""The results of a table, one line a run: a small CSV file, from which the page is made again without any run."""

import csv
import io
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.locks import file_lock
from fedexp.files.open_folders import make_folder
from fedexp.files.untrusted import read_regular
from fedexp.files.user_csv import rows_with_lines
from fedexp.replay.table import Cell, PublishedTable
from fedexp.replay.verdict import OurValues

NAME = "results.csv"
LARGEST = 50_000_000  # bytes


@dataclass(frozen=True)
class Result:
    """One run of a cell.

    `asked` tells for which words it was run, `value` is None where it did not reach what was measured within `rounds`,
    `digest` is that of its last models, `seconds` those of the host. `made_by` names what bits depend on: versions of
    fedexp and torch, and the device.
    """

    cell: str
    seed: int
    asked: str
    value: float | None
    rounds: int
    digest: str
    seconds: float
    made_by: str
    commit: str

    @property
    def censored_value(self) -> float:
        """The value; if it was not reached, the round after the last, the earliest in which it could have been."""
        return self.rounds + 1.0 if self.value is None else self.value

    @property
    def value_text(self) -> str:
        """The value, or that it was not reached."""
        return "not reached" if self.value is None else f"{self.value:.6g}"


COLUMNS = tuple(field.name for field in fields(Result))


def read(folder: Path) -> list[Result]:
    """The results in a folder, none where there is no file.

    Raises:
        ConfigError: the file is no such table.
    """
    path = folder / NAME
    if not os.path.lexists(path):  # a link that leads nowhere is refused like any other
        return []
    try:
        lines = list(rows_with_lines(io.StringIO(read_regular(path, LARGEST).decode())))
        if not lines or tuple(lines[0][1]) != COLUMNS:
            raise ValueError(f"its first line must be {','.join(COLUMNS)}")
        results = [_parse_result(number, line) for number, line in lines[1:]]
        if len({(result.cell, result.seed) for result in results}) < len(results):
            raise ValueError("a cell and seed may have one line")
        return results
    except ConfigError:  # it is no file, and says what to do
        raise
    except (ValueError, csv.Error) as error:
        raise ConfigError(f"{display_path(path)} cannot be read as results: {error}; restore it") from error


def _parse_result(number: int, line: list[str]) -> Result:
    if len(line) != len(COLUMNS):
        raise ValueError(f"line {number} must have {len(COLUMNS)} cells, got {len(line)}")
    cell, seed, fingerprint, value, rounds, digest, seconds, made_by, commit = line
    measured_value = float(value) if value else None
    if int(seed) < 0 or int(rounds) < 1 or not math.isfinite((measured_value or 0.0) + float(seconds)):
        raise ValueError(
            f"line {number} must have a seed >= 0, a round, and a finite value and time, got {','.join(line[:7])}"
        )
    return Result(cell, int(seed), fingerprint, measured_value, int(rounds), digest, float(seconds), made_by, commit)


def add(folder: Path, table: PublishedTable, result: Result) -> None:
    """Adds the result of a run, in place of an earlier one of that cell and seed."""
    make_folder(folder)
    with file_lock(folder / ".lock"):
        remaining = [earlier for earlier in read(folder) if (earlier.cell, earlier.seed) != (result.cell, result.seed)]
        write_atomically(folder / NAME, as_text(table, [*remaining, result]).encode())


def as_text(table: PublishedTable, results: Iterable[Result]) -> str:
    """The text of the file: cells in the table's order, cells that it no longer has last, and seeds ascending."""
    order = {cell.name: number for number, cell in enumerate(table.cells)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in sorted(results, key=lambda result: (order.get(result.cell, len(order)), result.cell, result.seed)):
        writer.writerow("" if value is None else value for value in asdict(result).values())
    return text.getvalue()


def results_of_cell(results: Iterable[Result], cell: Cell) -> list[Result]:
    """The results of a cell whose words and measure have not changed since."""
    return [result for result in results if result.cell == cell.name and result.asked == cell.fingerprint]


def planned_results(results: Iterable[Result], cell: Cell) -> list[Result]:
    """The results of the seeds that the table plans: whoever runs more, having seen these, changes no verdict."""
    return [result for result in results_of_cell(results, cell) if result.seed < cell.seeds]


def our_values(results: Iterable[Result], cell: Cell) -> OurValues:
    """The values of a cell's results."""
    cell_results = list(results)
    limit = min((result.rounds for result in cell_results), default=0)
    values = tuple(result.value for result in cell_results)
    return OurValues(values, limit, cell.measure.is_count, cell.seeds)
