"""How many coalitions a budget of permutations asks for, and where exact values cost no more than they are worth.

P independent, uniformly random permutations of M players meet a given coalition of s players with probability
1 - (1 - 1 / C(M, s))^P, as each permutation has exactly one prefix of s players and all C(M, s) are equally likely. So
the expected number of distinct coalitions is 2 (nobody, all) plus the sum over s of C(M, s) (1 - (1 - 1 / C(M, s))^P).
Utilities are remembered, so only distinct coalitions cost anything.

The rule: exact values are taken where that number is at least three quarters of 2^M, that is, where being exact costs
at most a third more than sampling. It is a rule of M and the budget alone. With the default of 50 M permutations:

    M                      8     9    10    11    12    13    14    16
    2^M                  256   512  1024  2048  4096  8192 16384 65536
    expected coalitions  256   504   947  1631  2548  3655  4905  7727
    share of 2^M        1.00  0.98  0.92  0.80  0.62  0.45  0.30  0.12
    exact                yes   yes   yes   yes    no    no    no    no

Where exact values do not pay, the methods of this project's choice ask for at most `AT_MOST` coalitions a round, what
the largest exact game of that table takes, whatever M is.
Legend: M players, P permutations.
"""

import math

EXACT_AT_MOST = 20  # players whose 2^M coalitions can be asked for
AT_MOST = 2048  # coalitions of a round, unless the experiment says otherwise
WORTH = 4 / 3  # how many times the coalitions of sampling exact values may take


def expected_coalitions(players: int, permutations: int) -> float:
    """Expected number of distinct coalitions, nobody and all included, in P uniformly random permutations."""
    sizes = [float(math.comb(players, size)) for size in range(1, players)]
    met = sum(-many * math.expm1(permutations * math.log1p(-1 / many)) for many in sizes)
    return min(2, 2**players) + met


def exact_pays(players: int, permutations: int, at_most: int | None) -> bool:
    """Whether all 2^M coalitions are at most a third more than these permutations ask for, and within the bound."""
    if players > EXACT_AT_MOST or (at_most is not None and 2**players > at_most):
        return False
    return 2**players <= WORTH * expected_coalitions(players, permutations)


def least(players: int) -> int:
    """Coalitions that M values cannot be told with less: M pairs, nobody and all; or all that there are."""
    return 2 * players + 2 if players > 3 else 2**players


def coalition_budget(players: int, permutations: int, at_most: int) -> int:
    """Coalitions that an estimator may ask for which does not count in permutations."""
    wanted = min(math.ceil(expected_coalitions(players, permutations)), at_most)
    return max(wanted, least(players))
