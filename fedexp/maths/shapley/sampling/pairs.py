"""Random pairs of a coalition and its complement, drawn by size, for the regression estimators.

A pair is two coalitions, of s and M - s players; s is at most M / 2. The row of a pair is the smaller one, or for
s = M / 2 the one with player 0. The Shapley kernel gives a coalition of s players the weight
1 / (C(M, s) s (M - s)) up to a factor, so all pairs of size s together weigh 2 / (s (M - s)), or 1 / s^2 for s = M / 2.
Legend: M players, n pairs.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

ENUMERATED = 4  # all pairs of a size are listed if they are at most this many times those wanted
UNCOUNTABLE = 2**1000  # in place of larger numbers, as C(M, M / 2) of 1,030 players is no float; no two draws are equal


@dataclass(frozen=True)
class Stratum:
    """Pairs `members [n, M]` in random order, standing for `population` pairs of this kernel weight in all.

    Where the pairs were drawn with replacement the population is infinite.
    """

    members: np.ndarray
    population: float
    weight: float

    @property
    def complete(self) -> bool:
        """Whether it holds every pair that it stands for."""
        return len(self.members) >= self.population


def kernel_weight(players: int, size: int) -> float:
    """Kernel weight of all pairs of this size together."""
    return (1 if 2 * size == players else 2) / (size * (players - size))


def count_pairs(players: int, size: int) -> int:
    """How many pairs of this size there are, at most `UNCOUNTABLE`."""
    return min(math.comb(players, size), UNCOUNTABLE) // (2 if 2 * size == players else 1)


def distinct_pairs(players: int, size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` different pairs of one size, all subsets equally likely, in random order, bool `[count, M]`."""
    population = count_pairs(players, size)
    if population <= ENUMERATED * count:
        return rng.permutation(_all_pairs(players, size))[:count]
    distinct: dict[bytes, np.ndarray] = {}
    while len(distinct) < count:
        for row in random_pairs(players, np.full(count, size), rng):
            distinct.setdefault(row.tobytes(), row)
    return np.array(list(distinct.values())[:count])


def random_pairs(players: int, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random pair of each of the `sizes [n]`, bool `[n, M]`; a pair may come twice."""
    rank = np.argsort(np.argsort(rng.random((len(sizes), players)), axis=1), axis=1)
    members = rank < sizes[:, None]
    flip = (2 * sizes == players) & ~members[:, 0]
    return members ^ flip[:, None]


def first_share(strata: list[Stratum], share: float) -> list[Stratum]:
    """The first share of each sampled stratum, at least two pairs; complete strata stay complete."""
    cut = (max(2, math.ceil(share * len(stratum.members))) for stratum in strata)
    return [
        stratum if stratum.complete else replace(stratum, members=stratum.members[:some])
        for stratum, some in zip(strata, cut, strict=True)
    ]


def _all_pairs(players: int, size: int) -> np.ndarray:
    halves = 2 * size == players
    free = range(1, players) if halves else range(players)
    rows = list(combinations(free, size - halves))
    chosen = np.array(rows, dtype=np.int64).reshape(len(rows), size - halves)
    members = np.zeros((len(chosen), players), dtype=bool)
    np.put_along_axis(members, chosen, True, axis=1)
    members[:, 0] |= halves
    return members
