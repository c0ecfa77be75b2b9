"""The last line of `fedexp verify`: what was checked, and what was not."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from fedexp.config import noted
from fedexp.run import checkpoint
from fedexp.verify import tables
from fedexp.verify.recorded import Recorded
from fedexp.verify.replay import Stage

SHOWN = 8
FILES = (  # that are checked, as far as the last line does not say otherwise
    *("metrics.csv", "clients.csv", "digests.csv", "clusters.csv", "client_accuracy.csv", "federation.csv"),
    *("summary.json", checkpoint.NAME, checkpoint.PREVIOUS),
    *(f"{noted.FOLDER}/{name}.yaml" for name in noted.FILES),
)


def closing(recorded: Recorded, ready: Stage, played: Sequence[int], *, every: bool, bit_by_bit: bool) -> str:
    """One line with what was checked and what was not."""
    checked = ["metrics.csv, clients.csv and digests.csv against each other"]
    whole = not any(tables.gaps(recorded, ready.exp.rounds, ready.exp.stop))
    made = [name for name in ("summary.json", "federation.csv", "client_accuracy.csv") if _there(recorded, name)]
    made = [name for name in made if whole or name == "federation.csv"]
    checked += [f"{' and '.join(made)} computed again"] if made else []
    states = sum(claim.round in recorded.lines for claim in recorded.claims)
    checked += [f"{states} saved state{'s' * (states > 1)}"] if states else []
    checked += [f"played again: round{'s' * (len(played) > 1)} {spans(sorted(played))}"] if played else []
    left = _left(recorded, played, every=every, whole=whole, bit_by_bit=bit_by_bit)
    return f"checked: {'; '.join(checked)}. not checked: {'; '.join(left)}"


def _there(recorded: Recorded, name: str) -> bool:
    return (recorded.folder / name).is_file()


def spans(numbers: Sequence[int]) -> str:
    """Formats ascending numbers as ranges.

    Example:
        >>> spans([1, 2, 3, 5, 7, 8])
        '1-3, 5, 7, 8'
    """
    runs = np.split(np.array(numbers), np.flatnonzero(np.diff(numbers) != 1) + 1)
    told = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run.tolist())) for run in runs]
    return ", ".join(told)


def _left(recorded: Recorded, played: Sequence[int], *, every: bool, whole: bool, bit_by_bit: bool) -> Iterator[str]:
    if missing := [number for number in recorded.lines if number not in played]:
        cure = "" if every else " (--all plays all of them)"
        yield f"what was computed in round{'s' * (len(missing) > 1)} {spans(missing)}{cure}"
    if not bit_by_bit:
        yield "digests, since bits may differ here"
    if not recorded.ended:
        yield "summary.json, since the run has not ended"
    elif not whole:
        yield "summary.json, since metrics.csv is not whole"
    yield from _unchecked_states(recorded, played, every=every)
    yield "seconds and versions"
    if others := unchecked_files(recorded.folder, FILES):
        yield others


def unchecked_files(folder: Path, known: Collection[str]) -> str:
    """The files that no check reads, in words."""
    every = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    others = [name for name in every if name not in known and name != ".lock" and not name.startswith("states/")]
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    return ", ".join(others[:SHOWN]) + more


def _unchecked_states(recorded: Recorded, played: Sequence[int], *, every: bool) -> Iterator[str]:
    if not recorded.claims:
        yield f"{checkpoint.NAME}, since there is none to read"
    if lost := sorted({claim.round for claim in recorded.claims} - set(recorded.lines)):
        yield f"what is saved of round{'s' * (len(lost) > 1)} {spans(lost)}, since metrics.csv has no line of it"
    if left := sorted({claim.round for claim in recorded.claims} & set(recorded.lines) - set(played)):
        yield f"what parts remember in the state{'s' * (len(left) > 1)} of round{'s' * (len(left) > 1)} {spans(left)}"
    if not every and any(claim.path.parent != recorded.folder for claim in recorded.claims):
        yield f"what the models in {checkpoint.KEPT}/ score"
