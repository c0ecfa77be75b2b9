"""Checks whether the tables of a folder are complete and agree with each other, before they are used."""

from collections.abc import Iterator
from typing import Any

from fedexp.core.values import Memory
from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.parts.stop.contract import Stop
from fedexp.run import digests
from fedexp.run.tables import first_columns
from fedexp.simulation.measures import confusion_matrix, presence
from fedexp.simulation.setup.experiment import Experiment
from fedexp.verify.comparison import Difference, differing_columns, name_rounds, spans
from fedexp.verify.record import RunRecord

WRITTEN_AT_ONCE = ("client_scores.csv", confusion_matrix.NAME, presence.NAME)


def gaps(record: RunRecord, rounds: int, stop: Stop) -> Iterator[Difference]:
    """Yields rounds missing from metrics.csv, and lines out of order; only a stop rule ends a run before `rounds`."""
    numbers, last = record.rounds("metrics.csv"), record.finished_rounds
    ends, _ = reason_to_stop(record, stop)
    if last < len(numbers):
        missing = last + 1 not in numbers
        yield Difference(last + 1, "it has no line in metrics.csv" if missing else "its line is not in its place")
    elif record.has_ended and last < rounds and ends != last:
        yield Difference(last + 1, f"metrics.csv ends before it, though the run has {rounds} rounds and did not stop")
    elif last > min(rounds, ends or rounds):
        why = f"the run has {rounds} rounds" if last > rounds else f"the run had to stop after round {ends}"
        yield Difference(min(rounds, ends or rounds) + 1, why)


def reason_to_stop(record: RunRecord, stop: Stop) -> tuple[int, str | None]:
    """The round after which the rule ends the run, and why, judged from metrics.csv; (0, None) if it does not."""
    memory: Memory = {}
    for number, line in record.lines.items():
        try:
            reason, memory = stop.judge({name: _value(text) for name, text in line.items()}, memory)
        except (LookupError, AssertionError, TypeError):  # a column that it needs is not there, which is told elsewhere
            return 0, None
        memory = {**memory, "reason": reason}
        if reason:
            return number, reason
    return 0, None


def _value(text: str) -> Any:
    """The value of a cell; nan where it is empty."""
    if text.isdecimal():
        return int(text)
    try:
        return float(text or "nan")
    except ValueError:
        return text


def partial_line_complaints(record: RunRecord) -> Iterator[str]:
    """Yields a complaint for each table that ends within a line, which other programs would read as a line.

    Only a run that was killed leaves such a line behind, and only in a table that grows.
    """
    growing = () if record.has_ended else tuple(record.tables)
    for name in (*record.tables, *WRITTEN_AT_ONCE):
        if name not in growing and (text := run_tables.partial_line(record.folder / name)):
            path = display_path(record.folder / name)
            yield f"{path} has text behind its last line break, which no such run writes: {text[:40]!r}"


def clustering_complaints(record: RunRecord, *, divides: bool) -> Iterator[str]:
    """Yields a complaint if clusters.csv is missing, or is there though no such run writes it."""
    path = record.folder / "clusters.csv"
    if path.is_file() != divides:
        yield f"{display_path(path)} {'is missing' if divides else 'is there, but no such run writes it'}"


def chain_differences(record: RunRecord, exp: Experiment) -> Iterator[Difference]:
    """Yields rounds in which tables do not fit digests.csv, and rounds that it lacks or that metrics.csv lacks."""
    chains, digest_rounds, names = record.chains, record.rounds(digests.NAME), first_columns(exp)
    if chains.lines and (problem := differing_columns(digests.NAME, chains.lines[1], (*digests.COLUMNS, *names))):
        yield Difference(1, problem)
    if missing := sorted({*range(1, record.required_rounds + 1)} - {*digest_rounds}):
        suffix = f", nor in rounds {spans(missing[1:])}" if missing[1:] else ""
        absent = "" if (record.folder / digests.NAME).is_file() else f"; {digests.NAME} is missing"
        yield Difference(missing[0], f"no line in {digests.NAME}{suffix}{absent}")
    elif len(chains.lines) < len(digest_rounds):
        yield Difference(len(chains.lines) + 1, f"its line in {digests.NAME} is not in its place")
    for name in names:
        misfits = [number for number in chains.lines if number in record.lines and not chains.fits(name, number)]
        if misfits and name in chains.lines[1]:
            suffix = f", nor in {name_rounds(misfits[1:])}" if misfits[1:] else ""
            yield Difference(misfits[0], f"{name} is not what {digests.NAME} says{suffix}")
    for name in record.tables:
        if beyond := [number for number in record.rounds(name) if number > record.newest_round]:
            yield Difference(beyond[0], f"it has a line in {name}, but none in metrics.csv")
