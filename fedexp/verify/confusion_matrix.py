"""Checks confusion_matrix.csv against what the last state's model answers."""

from collections.abc import Iterator, Sequence

from fedexp.files.atomic import display_path
from fedexp.files.run_tables import Line
from fedexp.simulation.measures.confusion_matrix import FIRST, METRIC, NAME, rows
from fedexp.verify.comparison import differing_lines
from fedexp.verify.record import RunRecord, read_table
from fedexp.verify.rerun import Rerun, format_row


def confusion_complaints(record: RunRecord, rerun: Rerun, tolerance: float) -> Iterator[str]:
    """Yields a complaint if the table is not that of the last state's model, or is there though no run writes it.

    Where bits may differ, shares of the test examples are compared in place of counts.
    """
    path, saved_state = record.folder / NAME, record.last
    if not (record.has_ended and rerun.exp.evaluation.test and METRIC in rerun.exp.metrics):
        if path.is_file():
            yield f"{display_path(path)} is there, but no such run writes it"
    elif saved_state is not None and saved_state.round == record.finished_rounds:
        recomputed = [format_row(line) for line in rows(rerun.exp, rerun.world, rerun.state(saved_state))]
        written: Sequence[Line] = read_table(path, (FIRST,))
        if tolerance:
            written, recomputed = (
                [_as_shares(line, len(rerun.world.test)) for line in lines] for lines in (written, recomputed)
            )
        if problem := differing_lines(NAME, written, recomputed, tolerance):
            yield f"{display_path(path)}: {problem}"


def _as_shares(line: Line, examples: int) -> Line:
    return {
        name: str(int(cell) / examples) if cell.isdecimal() and name != FIRST else cell for name, cell in line.items()
    }
