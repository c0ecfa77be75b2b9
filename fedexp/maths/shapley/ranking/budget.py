"""How many coalitions a round may evaluate, and the method that `auto` takes.

P independent, uniformly random permutations of M players meet a given coalition of s players with probability
1 - (1 - 1 / C(M, s))^P, as each permutation has exactly one prefix of s players and all C(M, s) are equally likely. So
the expected number of distinct coalitions is 2 (nobody, all) plus the sum over s of C(M, s) (1 - (1 - 1 / C(M, s))^P).
Utilities are remembered, so only distinct coalitions cost anything.

The surrogate evaluates at most `PER_PLAYER` M coalitions, or the experiment's `coalitions`. Measured on 30 rounds of
MNIST with M = 10 (`scripts/studies/shapley`), stopping at 7, 8 or 10 M where errors are small and with a quarter of the
examples for all but 3 M coalitions (`subsampled_validation`): 84 coalitions on average, which cost as much as 43 on all
examples. The largest error of a client (mean of 5 seeds) was 1.0 % of the spread in the median round and 2.4 % in the
worst; the better half was right in 94 %. With 8 M coalitions, all on all examples, the worst round had 4.1 %; with 6 M,
11 %. On smooth synthetic games with M = 100 the errors stay near 10 % up to 12 M. `auto` takes exact values where all
2^M coalitions fit into that budget, the surrogate up to `SMOOTH_AT_MOST` players (its linear algebra grows with the
cube of the coalitions), leverage scores beyond:

    M                  1   2   3   4   5   6    7    8    9   10   12   20   50   100   170   200     201
    2^M                2   4   8  16  32  64  128  256  512 1024 4096  1e6 1e15  1e30  1e51  1e60
    at most            2   4   8  16  32  64   84   96  108  120  144  240  600  1200  2040  2048    2048
    method         exact   .   .   .   .   .    surrogate  .   .    .    .    .     .     .     . leverage

Methods that are not done as published evaluate at most `AT_MOST` coalitions a round, unless `coalitions` is given.
Legend: M players, P permutations.
"""

import math

from fedexp.maths.shapley.sampling.pairs import UNCOUNTABLE

EXACT_AT_MOST = 20  # players whose 2^M coalitions can be asked for
AT_MOST = 2048  # coalitions of a round, unless the experiment says otherwise
PER_PLAYER = 12  # coalitions that the surrogate asks for at most
SMOOTH_AT_MOST = 200  # players of whom `auto` makes a surrogate
SURROGATE_AT_MOST = 1000  # players of whom anybody may ask for one


def expected_coalitions(players: int, permutations: int) -> float:
    """Expected number of distinct coalitions, nobody and all included, in P uniformly random permutations."""
    met = sum(-many * math.expm1(permutations * math.log1p(-1 / many)) for many in coalitions_by_size(players))
    return min(2, 2**players) + met


def coalitions_by_size(players: int) -> list[float]:
    """C(M, s) for s = 1 ... M - 1; no number is above `UNCOUNTABLE`."""
    half, many = [], 1
    for size in range(1, players // 2 + 1):  # up to the middle they grow, so one that was cut stays cut
        many = min(many * (players + 1 - size) // size, UNCOUNTABLE)
        half.append(float(many))
    return half + half[: players - 1 - len(half)][::-1]


def surrogate_budget(players: int, coalitions: int | None) -> int:
    """Coalitions that the surrogate may evaluate; `coalitions` is the experiment's bound, or None."""
    wanted = min(PER_PLAYER * players, AT_MOST) if coalitions is None else coalitions
    return max(wanted, min_coalitions(players))


def choose_method(players: int, coalitions: int | None) -> str:
    """The method that `auto` chooses: exact, surrogate or leverage."""
    if players <= EXACT_AT_MOST and 2**players <= surrogate_budget(players, coalitions):
        return "exact"
    return "surrogate" if players <= SMOOTH_AT_MOST else "leverage"


def min_coalitions(players: int) -> int:
    """The fewest coalitions that determine M values: M pairs, the empty and the full one; or all of few players."""
    return 2 * players + 2 if players > 3 else 2**players


def coalition_budget(players: int, permutations: int, at_most: int) -> int:
    """Coalitions that an estimator may evaluate if its budget is given in permutations but it does not draw any."""
    wanted = min(math.ceil(expected_coalitions(players, permutations)), at_most)
    return max(wanted, min_coalitions(players))
