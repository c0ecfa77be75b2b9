"""Chooses the rounds to compute again and the states to start from: rounds soon after a saved state cost least."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fedexp.core.random_streams import stream

NEAR = 10  # rounds up to this far behind a state are preferred to others


@dataclass(frozen=True)
class Segment:
    """Rounds recomputed in one go, from the state after round `start`; only those in `sample` were chosen."""

    start: int
    sample: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.sample[-1]


def choose(finished: int, starts: Collection[int], count: int, seed: int) -> list[Segment]:
    """Draws `count` rounds (all, if there are no more): round 1, the last if it is near a state, then random ones.

    The last one is what the newest state must come from. Of the random ones, those right after a saved state come
    first, then those within NEAR of one, then the others.

    Example:
        >>> choose(30, [10, 20], 3, 0)
        [Segment(start=0, sample=(1,)), Segment(start=20, sample=(21, 30))]
    """
    if not finished:
        return []
    nearest = np.zeros(finished + 1, dtype=np.int64)
    for start in sorted(start for start in {0, *starts} if start < finished):
        nearest[start + 1 :] = start
    rounds = np.arange(1, finished + 1)
    cost = rounds - nearest[1:]
    rank = np.digitize(cost, [2, NEAR + 1])  # 0: right after a state, 1: near one, 2: far
    rank[-1] -= 3 * (cost[-1] <= NEAR)
    rank[0] = -4
    permutation = stream(seed, "verify").permutation(finished)
    chosen = np.sort(rounds[permutation[np.argsort(rank[permutation], kind="stable")][:count]])
    return [
        Segment(start, tuple(chosen[nearest[chosen] == start].tolist()))
        for start in np.unique(nearest[chosen]).tolist()
    ]


def count_computed(segments: list[Segment]) -> int:
    """How many rounds must be computed for these segments."""
    return sum(segment.last - segment.start for segment in segments)


def largest_count(finished: int, starts: Collection[int], rounds: float, seed: int) -> int:
    """The largest count for which `choose` needs at most `rounds` rounds computed; at least 1."""
    counts = range(1, finished + 1)
    return max(1, bisect_right(counts, rounds, key=lambda count: count_computed(choose(finished, starts, count, seed))))
