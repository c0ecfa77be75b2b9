"""Which rounds are replayed, and from where: what is close behind a saved state costs least."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fedexp.core.random_streams import stream

NEAR = 10  # rounds that may be computed to reach one, before others are preferred


@dataclass(frozen=True)
class Stretch:
    """Rounds replayed in one go, from the state after round `start` up to `last`, for the sake of `asked`."""

    start: int
    asked: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.asked[-1]


def choose(finished: int, starts: Collection[int], count: int, seed: int) -> list[Stretch]:
    """`count` rounds (all, if there are no more): round 1, then random ones, those after a saved state first.

    Where too few follow a state directly, those within NEAR rounds of one are drawn, and the others last.

    Example:
        >>> choose(30, [10, 20], 3, 0)
        [Stretch(start=0, asked=(1,)), Stretch(start=10, asked=(11,)), Stretch(start=20, asked=(21,))]
    """
    if not finished:
        return []
    nearest = np.zeros(finished + 1, dtype=np.int64)
    for start in sorted(start for start in {0, *starts} if start < finished):
        nearest[start + 1 :] = start
    rounds = np.arange(1, finished + 1)
    cost = rounds - nearest[1:]
    rank = np.digitize(cost, [2, NEAR + 1])  # 0: directly behind a state, 1: near one, 2: far
    rank[0] = -1
    mixed = stream(seed, "verify").permutation(finished)
    chosen = np.sort(rounds[mixed[np.argsort(rank[mixed], kind="stable")][:count]])
    return [
        Stretch(start, tuple(chosen[nearest[chosen] == start].tolist()))
        for start in np.unique(nearest[chosen]).tolist()
    ]
