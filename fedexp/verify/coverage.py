"""The last line of `fedexp verify`: what was checked, and what was not."""

from collections.abc import Iterator, Sequence

import numpy as np

from fedexp.run import checkpoint
from fedexp.verify import tables
from fedexp.verify.recorded import Recorded
from fedexp.verify.replay import Stage


def closing(recorded: Recorded, ready: Stage, played: Sequence[int], *, every: bool, bit_by_bit: bool) -> str:
    """Both lists in one line."""
    checked = ["metrics.csv, clients.csv and digests.csv against each other"]
    whole = not any(tables.gaps(recorded, ready.exp.rounds))
    makeable = ("summary.json", "federation.csv") if whole else ("federation.csv",)
    made = [name for name in makeable if (recorded.folder / name).is_file()]
    checked += [f"{' and '.join(made)} computed again"] if made else []
    states = sum(claim.round in recorded.lines for claim in recorded.claims)
    checked += [f"{states} saved state{'s' * (states > 1)}"] if states else []
    checked += [f"played again: round{'s' * (len(played) > 1)} {spans(sorted(played))}"] if played else []
    left = _left(recorded, ready, played, every=every, whole=whole, bit_by_bit=bit_by_bit)
    return f"checked: {'; '.join(checked)}. not checked: {'; '.join(left)}"


def spans(numbers: Sequence[int]) -> str:
    """Ascending numbers as people write them.

    Example:
        >>> spans([1, 2, 3, 5, 7, 8])
        '1-3, 5, 7, 8'
    """
    runs = np.split(np.array(numbers), np.flatnonzero(np.diff(numbers) != 1) + 1)
    told = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run.tolist())) for run in runs]
    return ", ".join(told)


def _left(
    recorded: Recorded, ready: Stage, played: Sequence[int], *, every: bool, whole: bool, bit_by_bit: bool
) -> Iterator[str]:
    if missing := [number for number in recorded.lines if number not in played]:
        cure = "" if every else " (--all plays all of them)"
        yield f"what was computed in round{'s' * (len(missing) > 1)} {spans(missing)}{cure}"
    if not bit_by_bit:
        yield "digests, since bits may differ here"
    if not recorded.ended:
        yield "summary.json, since the run has not ended"
    elif not whole:
        yield "summary.json, since metrics.csv is not whole"
    yield from _unchecked_states(recorded, every=every)
    if ready.exp.clustering.divides:
        yield "clusters.csv and client_accuracy.csv"
    yield "seconds, versions and pictures"


def _unchecked_states(recorded: Recorded, *, every: bool) -> Iterator[str]:
    if not recorded.claims:
        yield f"{checkpoint.NAME}, since there is none to read"
    if lost := sorted({claim.round for claim in recorded.claims} - set(recorded.lines)):
        yield f"what is saved of round{'s' * (len(lost) > 1)} {spans(lost)}, since metrics.csv has no line of it"
    if not every and any(claim.path.parent != recorded.folder for claim in recorded.claims):
        yield f"what the models in {checkpoint.KEPT}/ score"
