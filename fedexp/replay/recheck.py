"""Runs lines of a table's results again and compares: the same machine and versions must give the same models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.files.atomic import display_path
from fedexp.process.exits import interruptible
from fedexp.replay import catalog, results, table
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.replay import Job, Replay
from fedexp.replay.results import Result
from fedexp.replay.table import PublishedTable


def verify(
    path: Path, count: int | None, seed: int, tell: Callable[[str], None], table_file: str | None = None
) -> tuple[list[str], bool]:
    """Runs `count` random lines of the results again (None: all).

    Returns what is not as it was written, and whether all that is came out bit by bit.

    `table_file` is a table that the user named; without it the folder must be called like one of the package.

    Raises:
        ConfigError: it is no results.csv, its table is not known, or no line is of a cell as it is asked for today.
    """
    if path.name != results.NAME:
        raise ConfigError(f"verify needs a run folder or a {results.NAME}, got {display_path(path)}")
    folder = path.absolute().parent
    chosen = table.load(table_file) if table_file is not None else _catalogued_table(path, folder.name)
    all_results = results.read(folder)
    lines = [result for cell in chosen.cells for result in results.results_of_cell(all_results, cell)]
    _tell_stale(chosen, [result for result in all_results if result not in lines], tell)
    if not lines:
        raise ConfigError(f"{display_path(path)} has no line of a cell of {chosen.name} as it is asked for today")
    order = sorted(stream(seed, "verify").permutation(len(lines))[: count or len(lines)])
    rounded: list[Result] = []
    complaints = run_again(chosen, [lines[position] for position in order], tell, rounded)
    tell(f"{len(order)} of {len(lines)} lines run again, {len(order) - len(complaints)} as they were written")
    return complaints, not rounded


def _tell_stale(chosen: PublishedTable, lines: Sequence[Result], tell: Callable[[str], None]) -> None:
    cell_names = {cell.name for cell in chosen.cells}
    changed = sum(line.cell in cell_names for line in lines)
    if lines:
        removed_count = len(lines) - changed
        description = f"{changed} whose cell was changed since, {removed_count} whose cell {chosen.name} no longer has"
        tell(f"lines not run again: {description}")


def run_again(
    chosen: PublishedTable, lines: Sequence[Result], tell: Callable[[str], None], rounded: list[Result] | None = None
) -> list[str]:
    """Runs lines of a table's results again in a folder that is removed; returns what is not as it was written.

    Lines that are so within rounding only are added to `rounded`.
    """
    inexact = [] if rounded is None else rounded
    with TemporaryDirectory() as directory, interruptible("no file was changed"):
        return [fault for line in lines if (fault := _rerun_line(chosen, line, Path(directory), tell, inexact))]


def _catalogued_table(path: Path, name: str) -> PublishedTable:
    if name not in catalog.names():  # nothing that lies in the folder says what is run
        table_names = ", ".join(catalog.names())
        raise ConfigError(
            f"{display_path(path)} must lie in a folder called like a table, one of {table_names}, got {name}; for a "
            "table of your own add --table FILE.yml"
        )
    return table.load(name)


def _rerun_line(
    chosen: PublishedTable, line: Result, directory: Path, tell: Callable[[str], None], rounded: list[Result]
) -> str | None:
    cell = next(cell for cell in chosen.cells if cell.name == line.cell)
    try:
        failed = Replay(chosen, directory, [Job(0, cell, line.seed)]).execute()
        reason = failed[0].end.message if failed else ""
    except ConfigError as error:
        reason = str(error)
    if reason:
        return f"{_run_label(line)} cannot be run again: {reason.replace(str(directory), 'its folder')}"
    now = next(result for result in results.read(directory) if (result.cell, result.seed) == (line.cell, line.seed))
    fault = difference(line, now, cell.measure)
    if fault is None and (now.digest, now.value) != (line.digest, line.value):
        rounded.append(line)
    if fault is None and now.made_by != line.made_by:
        tell(f"{_run_label(line)}: then by {line.made_by}, now by {now.made_by}; bits may differ")
    return fault


def difference(before: Result, now: Result, measure: CellQuantity) -> str | None:
    """How a result differs from the earlier one, in words; on another machine it may differ by rounding."""
    if (before.digest, before.value) == (now.digest, now.value):
        return None
    values = f"{before.value_text} then, {now.value_text} now"
    if before.made_by == now.made_by:
        return f"{_run_label(before)}: the models differ; {values}"
    if measure.agrees_across_machines(before.censored_value, now.censored_value):
        return None
    return f"{_run_label(before)}: {values}; then by {before.made_by}, now by {now.made_by}"


def _run_label(line: Result) -> str:
    return f"{line.cell}, seed {line.seed}"
