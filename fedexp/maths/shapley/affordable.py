"""How many coalitions a round may ask for: of permutations, of the surrogate, and where exact values cost no more.

P independent, uniformly random permutations of M players meet a given coalition of s players with probability
1 - (1 - 1 / C(M, s))^P, as each permutation has exactly one prefix of s players and all C(M, s) are equally likely. So
the expected number of distinct coalitions is 2 (nobody, all) plus the sum over s of C(M, s) (1 - (1 - 1 / C(M, s))^P).
Utilities are remembered, so only distinct coalitions cost anything.

The surrogate asks for at most `PER_PLAYER` M coalitions, or for `coalitions` of the experiment. On 30 real rounds of
MNIST with M = 10 (`scripts/studies/shapley`), stopping at 7, 8 or 10 M where errors are small and with a quarter of
the examples for all but 3 M coalitions (`fidelities`): 84 coalitions in the mean, which cost as much as 43 on all
examples; the largest error of a client (mean of 5 seeds) 1.0 % of the spread in the median round, 2.4 % in the worst;
the better half right in 94 %. Always 8 M, all on all examples: 4.1 % in the worst; always 6 M: 11 %. On smooth made
games with M = 100 the errors stay near 10 % up to 12 M.
`auto` takes exact values where all 2^M coalitions are no more than that, the surrogate up to `SMOOTH_AT_MOST` players
(its linear algebra grows with the cube of the coalitions), leverage scores beyond:

    M                  1   2   3   4   5   6    7    8    9   10   12   20   50   100   170   200     201
    2^M                2   4   8  16  32  64  128  256  512 1024 4096  1e6 1e15  1e30  1e51  1e60
    at most            2   4   8  16  32  64   84   96  108  120  144  240  600  1200  2040  2048    2048
    method         exact   .   .   .   .   .    surrogate  .   .    .    .    .     .     .     . leverage

What is not done as published asks for at most `AT_MOST` coalitions a round, whatever M is, unless told otherwise.
Legend: M players, P permutations.
"""

import math

EXACT_AT_MOST = 20  # players whose 2^M coalitions can be asked for
AT_MOST = 2048  # coalitions of a round, unless the experiment says otherwise
PER_PLAYER = 12  # coalitions that the surrogate asks for at most
SMOOTH_AT_MOST = 200  # players of whom `auto` makes a surrogate


def expected_coalitions(players: int, permutations: int) -> float:
    """Expected number of distinct coalitions, nobody and all included, in P uniformly random permutations."""
    sizes = [float(math.comb(players, size)) for size in range(1, players)]
    met = sum(-many * math.expm1(permutations * math.log1p(-1 / many)) for many in sizes)
    return min(2, 2**players) + met


def surrogate_budget(players: int, coalitions: int | None) -> int:
    """Coalitions that the surrogate may ask for, where the experiment bounds them or not."""
    wanted = min(PER_PLAYER * players, AT_MOST) if coalitions is None else coalitions
    return max(wanted, least(players))


def affordable_method(players: int, coalitions: int | None) -> str:
    """What `auto` stands for: exact, surrogate or leverage."""
    if players <= EXACT_AT_MOST and 2**players <= surrogate_budget(players, coalitions):
        return "exact"
    return "surrogate" if players <= SMOOTH_AT_MOST else "leverage"


def least(players: int) -> int:
    """Coalitions that M values cannot be told with less: M pairs, nobody and all; or all that there are."""
    return 2 * players + 2 if players > 3 else 2**players


def coalition_budget(players: int, permutations: int, at_most: int) -> int:
    """Coalitions that an estimator may ask for which does not count in permutations."""
    wanted = min(math.ceil(expected_coalitions(players, permutations)), at_most)
    return max(wanted, least(players))
