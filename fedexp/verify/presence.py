"""Checks presence.csv against when the clients of the config are there."""

from collections.abc import Iterator

from fedexp.files.atomic import display_path
from fedexp.simulation.measures.presence import NAME, rows
from fedexp.verify.comparison import differing_lines
from fedexp.verify.record import RunRecord, read_table
from fedexp.verify.rerun import Rerun, format_row


def presence_complaints(record: RunRecord, rerun: Rerun, tolerance: float) -> Iterator[str]:
    """Yields a complaint if the table is not of the clients of the config, or is there though no run writes it.

    Runs of earlier versions have none.
    """
    path, saved_state = record.folder / NAME, record.last
    if not path.is_file():
        return
    if not (record.has_ended and rerun.exp.availability.changes):
        yield f"{display_path(path)} is there, but no such run writes it"
    elif saved_state is not None and saved_state.round == record.finished_rounds:
        recomputed = [format_row(line) for line in rows(rerun.exp, rerun.world, rerun.state(saved_state))]
        if problem := differing_lines(NAME, read_table(path, ("client",)), recomputed, tolerance):
            yield f"{display_path(path)}: {problem}"
