"""How far the tables of a run are complete, and whether a saved state agrees with them.

A run resumes from a state only if metrics.csv, clients.csv and digests.csv have all rounds up to it, and the digest of
its models is the recorded one. Otherwise its tables would have a gap, or belong to another run.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from fedexp.core.values import State
from fedexp.files.run_tables import count_consecutive, read_lines
from fedexp.run import digests
from fedexp.run.tables import CLIENTS, CLUSTERS, METRICS


@dataclass(frozen=True)
class TableConsistency:
    """The last complete round of each table, and the digests of the models."""

    complete_rounds: Mapping[str, int]
    digests: Mapping[int, str]

    def objection(self, state: State) -> str:
        """Why the run cannot resume from this state; empty if it can."""
        short = min(self.complete_rounds, key=lambda name: self.complete_rounds[name])
        if state.round > self.complete_rounds[short]:
            return f"is of round {state.round}, but {short} is whole up to round {self.complete_rounds[short]} only"
        if state.round and digests.digest(state.models) != self.digests[state.round]:
            return f"holds other models than {digests.NAME} says of round {state.round}"
        return ""


def read_consistency(folder: Path, *, clustered: bool) -> TableConsistency:
    """Reads the tables of a run folder, as far as they are valid."""
    expected = [int(line["participants"]) for line in _consecutive_lines(folder / "metrics.csv", METRICS)]
    digest_by_round = {
        int(line["round"]): line["digest"] for line in _consecutive_lines(folder / digests.NAME, digests.COLUMNS)
    }
    complete_rounds = {
        "metrics.csv": len(expected),
        "clients.csv": _last_round_with_all_clients(folder, expected),
        digests.NAME: len(digest_by_round),
    }
    if clustered:
        complete_rounds["clusters.csv"] = _last_cluster_round(folder, len(expected))
    return TableConsistency(complete_rounds, digest_by_round)


def _consecutive_lines(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The lines of rounds 1, 2, 3, ... up to the first gap in the numbers."""
    table_lines = list(read_lines(path, columns))
    return table_lines[: count_consecutive([int(line["round"]) for line in table_lines])]


def _last_round_with_all_clients(folder: Path, expected: list[int]) -> int:
    """The last round up to which clients.csv has every participant; lines of the server are not counted."""
    client_counts, last = Counter[int](), 0
    for line in read_lines(folder / "clients.csv", CLIENTS):
        if (number := int(line["round"])) < last:
            break
        last = number
        client_counts[number] += int(line["client"]) >= 0
    return sum(1 for _ in takewhile(lambda pair: client_counts[pair[0]] == pair[1], enumerate(expected, start=1)))


def _last_cluster_round(folder: Path, rounds: int) -> int:
    """The last round for which clusters.csv may be complete: not every round has events, so only bad lines count."""
    path = folder / "clusters.csv"
    content = path.read_bytes() if path.is_file() else b""
    event_rounds = [int(line["round"]) for line in read_lines(path, CLUSTERS)]
    is_intact = len(event_rounds) + 1 == content.count(b"\n")
    return rounds if is_intact else max(event_rounds, default=1) - 1
