"""Runs lines of a table's results again and compares: the same machine and versions must give the same models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedexp.core.errors import ConfigError
from fedexp.core.exits import interruptible
from fedexp.core.files import shown
from fedexp.core.random_streams import stream
from fedexp.replay import results, shelf, table
from fedexp.replay.measure import Measure
from fedexp.replay.replay import Job, Replay
from fedexp.replay.results import Result
from fedexp.replay.table import PublishedTable


def verify(
    path: Path, count: int | None, seed: int, tell: Callable[[str], None], own: str | None = None
) -> tuple[list[str], bool]:
    """Runs `count` random lines of the results again (None: all).

    Returns what is not as it was written, and whether all that is came out bit by bit.

    `own` is a table that the user named; without it the folder must be called like one of the package.

    Raises:
        ConfigError: it is no results.csv, its table is not known, or no line is of a cell as it is asked for today.
    """
    if path.name != results.NAME:
        raise ConfigError(f"verify needs a run folder or a {results.NAME}, got {shown(path)}")
    folder = path.absolute().parent
    chosen = table.load(own) if own is not None else _shelved(path, folder.name)
    held = results.read(folder)
    lines = [one for cell in chosen.cells for one in results.of_cell(held, cell)]
    _tell_stale(chosen, [one for one in held if one not in lines], tell)
    if not lines:
        raise ConfigError(f"{shown(path)} has no line of a cell of {chosen.name} as it is asked for today")
    order = sorted(stream(seed, "verify").permutation(len(lines))[: count or len(lines)])
    rounded: list[Result] = []
    complaints = run_again(chosen, [lines[place] for place in order], tell, rounded)
    tell(f"{len(order)} of {len(lines)} lines run again, {len(order) - len(complaints)} as they were written")
    return complaints, not rounded


def _tell_stale(chosen: PublishedTable, lines: Sequence[Result], tell: Callable[[str], None]) -> None:
    known = {cell.name for cell in chosen.cells}
    changed = sum(line.cell in known for line in lines)
    if lines:
        gone = len(lines) - changed
        told = f"{changed} whose cell was changed since, {gone} whose cell {chosen.name} no longer has"
        tell(f"lines not run again: {told}")


def run_again(
    chosen: PublishedTable, lines: Sequence[Result], tell: Callable[[str], None], rounded: list[Result] | None = None
) -> list[str]:
    """Runs lines of a table's results again in a folder that is removed; returns what is not as it was written.

    Lines that are so within rounding only are added to `rounded`.
    """
    held = [] if rounded is None else rounded
    with TemporaryDirectory() as made, interruptible("no file was changed"):
        return [fault for line in lines if (fault := _again(chosen, line, Path(made), tell, held))]


def _shelved(path: Path, name: str) -> PublishedTable:
    if name not in shelf.names():  # nothing that lies in the folder says what is run
        known = ", ".join(shelf.names())
        raise ConfigError(
            f"{shown(path)} must lie in a folder called like a table, one of {known}, got {name}; for a table of your "
            "own add --table FILE.yml"
        )
    return table.load(name)


def _again(
    chosen: PublishedTable, line: Result, place: Path, tell: Callable[[str], None], rounded: list[Result]
) -> str | None:
    cell = next(cell for cell in chosen.cells if cell.name == line.cell)
    try:
        failed = Replay(chosen, place, [Job(0, cell, line.seed)]).execute()
        why = failed[0].end.message if failed else ""
    except ConfigError as error:
        why = str(error)
    if why:
        return f"{_who(line)} cannot be run again: {why.replace(str(place), 'its folder')}"
    now = next(one for one in results.read(place) if (one.cell, one.seed) == (line.cell, line.seed))
    fault = difference(line, now, cell.measure)
    if fault is None and (now.digest, now.value) != (line.digest, line.value):
        rounded.append(line)
    if fault is None and now.made_by != line.made_by:
        tell(f"{_who(line)}: then by {line.made_by}, now by {now.made_by}; bits may differ")
    return fault


def difference(before: Result, now: Result, measure: Measure) -> str | None:
    """How a result differs from the earlier one, in words; on another machine it may differ by rounding."""
    if (before.digest, before.value) == (now.digest, now.value):
        return None
    values = f"{words(before.value)} then, {words(now.value)} now"
    if before.made_by == now.made_by:
        return f"{_who(before)}: the models differ; {values}"
    if measure.alike(before.counted, now.counted):
        return None
    return f"{_who(before)}: {values}; then by {before.made_by}, now by {now.made_by}"


def words(value: float | None) -> str:
    """A value as text, or that it was not reached."""
    return "not reached" if value is None else f"{value:.6g}"


def _who(line: Result) -> str:
    return f"{line.cell}, seed {line.seed}"
