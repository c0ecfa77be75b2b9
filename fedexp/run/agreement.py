"""How far the tables of a run are complete, and whether a saved state agrees with them.

A run resumes from a state only if metrics.csv, clients.csv and digests.csv have all rounds up to it, and the digest of
its models is the recorded one. Otherwise its tables would have a gap, or belong to another run.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from fedexp.core.csv_table import counted, lines
from fedexp.core.values import State
from fedexp.run import digests
from fedexp.run.tables import CLIENTS, CLUSTERS, METRICS


@dataclass(frozen=True)
class Agreement:
    """The last complete round of each table, and the digests of the models."""

    whole: Mapping[str, int]
    digests: Mapping[int, str]

    def objection(self, state: State) -> str:
        """Why the run cannot resume from this state; empty if it can."""
        short = min(self.whole, key=lambda name: self.whole[name])
        if state.round > self.whole[short]:
            return f"is of round {state.round}, but {short} is whole up to round {self.whole[short]} only"
        if state.round and digests.digest(state.models) != self.digests[state.round]:
            return f"holds other models than {digests.NAME} says of round {state.round}"
        return ""


def agreement(folder: Path, *, clustered: bool) -> Agreement:
    """Reads the tables of a run folder, as far as they are valid."""
    expected = [int(line["participants"]) for line in _counting(folder / "metrics.csv", METRICS)]
    made = {int(line["round"]): line["digest"] for line in _counting(folder / digests.NAME, digests.COLUMNS)}
    whole = {"metrics.csv": len(expected), "clients.csv": _attended(folder, expected), digests.NAME: len(made)}
    if clustered:
        whole["clusters.csv"] = _told(folder, len(expected))
    return Agreement(whole, made)


def _counting(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The lines of rounds 1, 2, 3, ... up to the first gap in the numbers."""
    found = list(lines(path, columns))
    return found[: counted([int(line["round"]) for line in found])]


def _attended(folder: Path, expected: list[int]) -> int:
    """The last round up to which clients.csv has every participant; lines of the server are not counted."""
    came, last = Counter[int](), 0
    for line in lines(folder / "clients.csv", CLIENTS):
        if (number := int(line["round"])) < last:
            break
        last = number
        came[number] += int(line["client"]) >= 0
    return sum(1 for _ in takewhile(lambda pair: came[pair[0]] == pair[1], enumerate(expected, start=1)))


def _told(folder: Path, rounds: int) -> int:
    """The last round for which clusters.csv may be complete: not every round has events, so only bad lines count."""
    path = folder / "clusters.csv"
    content = path.read_bytes() if path.is_file() else b""
    found = [int(line["round"]) for line in lines(path, CLUSTERS)]
    entire = len(found) + 1 == content.count(b"\n")
    return rounds if entire else max(found, default=1) - 1
