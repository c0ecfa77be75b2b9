"""The last line of `fedexp verify`: what was checked, and what was not."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from fedexp.config import saved_config
from fedexp.core.join_first import join_first
from fedexp.run import digests
from fedexp.run.state import checkpoint
from fedexp.run.tables import first_columns
from fedexp.simulation.measures import confusion_matrix, presence
from fedexp.verify import tables
from fedexp.verify.comparison import name_rounds
from fedexp.verify.record import RunRecord
from fedexp.verify.rerun import Rerun

SHOWN = 8
FILES = (  # that are checked, as far as the last line does not say otherwise
    *("metrics.csv", "clients.csv", "digests.csv", "clusters.csv", "client_scores.csv", "federation.csv"),
    *(confusion_matrix.NAME, presence.NAME),
    *("summary.json", saved_config.NAME, checkpoint.NAME, checkpoint.PREVIOUS),
    *(f"{saved_config.FOLDER}/{name}.yaml" for name in saved_config.FILES),
)


def describe_coverage(record: RunRecord, rerun: Rerun, played: Sequence[int], *, every: bool, bit_by_bit: bool) -> str:
    """One line with what was checked and what was not."""
    *first, last = first_columns(rerun.exp)
    checked = [f"{', '.join(first)} and {last} against {digests.NAME}"]
    is_complete = not any(tables.gaps(record, rerun.exp.rounds, rerun.exp.stop))
    all_names = ("summary.json", "federation.csv", "client_scores.csv", confusion_matrix.NAME, presence.NAME)
    names = all_names if is_complete else ("federation.csv",)
    recomputed_files = [name for name in names if (record.folder / name).is_file()]
    checked += [f"{' and '.join(recomputed_files)} computed again"] if recomputed_files else []
    states = sum(saved_state.round in record.lines for saved_state in record.saved_states)
    checked += [f"{states} saved state{'s' * (states > 1)}"] if states else []
    checked += [f"{name_rounds(sorted(played))} computed again"] if played else []
    unchecked_items = _unchecked_items(record, played, every=every, is_complete=is_complete, bit_by_bit=bit_by_bit)
    return f"checked: {'; '.join(checked)}. not checked: {'; '.join(unchecked_items)}"


def _unchecked_items(
    record: RunRecord, played: Sequence[int], *, every: bool, is_complete: bool, bit_by_bit: bool
) -> Iterator[str]:
    if missing := [number for number in record.lines if number not in played]:
        cure = "" if every else " (--all computes all of them)"
        yield f"what was computed in {name_rounds(missing)}{cure}"
    if not bit_by_bit:
        yield "digests, since bits may differ here"
    if not record.has_ended:
        yield "summary.json, since the run has not ended"
    elif not is_complete:
        yield "summary.json, since metrics.csv is not whole"
    yield from _unchecked_states(record, played, every=every)
    yield "seconds and versions"
    if other_files := unchecked_files(record.folder, FILES):
        yield other_files


def unchecked_files(folder: Path, checked_files: Collection[str]) -> str:
    """The files that no check reads, in words."""
    all_names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names = [
        name for name in all_names if name not in checked_files and name != ".lock" and not name.startswith("states/")
    ]
    return join_first(names, SHOWN)


def _unchecked_states(record: RunRecord, played: Sequence[int], *, every: bool) -> Iterator[str]:
    if not record.saved_states:
        yield f"{checkpoint.NAME}, since there is none to read"
    if lost := sorted({saved_state.round for saved_state in record.saved_states} - set(record.lines)):
        yield f"what is saved of {name_rounds(lost)}, since metrics.csv has no line of it"
    if not_recomputed := sorted(
        {saved_state.round for saved_state in record.saved_states} & set(record.lines) - set(played)
    ):
        yield f"what parts remember in the state{'s' * (len(not_recomputed) > 1)} of {name_rounds(not_recomputed)}"
    if not every and any(saved_state.path.parent != record.folder for saved_state in record.saved_states):
        yield f"what the models in {checkpoint.STATES_FOLDER}/ score"
