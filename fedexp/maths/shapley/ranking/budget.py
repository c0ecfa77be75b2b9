"""How many coalitions a round may evaluate, and the method that `auto` takes.

The surrogate evaluates at most `PER_PLAYER` M coalitions, or the experiment's `coalitions`. Measured on 30 rounds of
MNIST with M = 10 (`scripts/studies/shapley`), stopping at 7, 8 or 10 M where errors are small and with a quarter of the
examples for all but 3 M coalitions (`subsampled_validation`): 84 coalitions on average, which cost as much as 43 on all
examples. The largest error of a client (mean of 5 seeds) was 1.0 % of the spread in the median round and 2.4 % in the
worst; the better half was right in 94 %. With 8 M coalitions, all on all examples, the worst round had 4.1 %; with 6 M,
11 %. On smooth synthetic games with M = 100 the errors stay near 10 % up to 12 M, and with M = 250 they are 8 % at the
2,048 coalitions of which no round takes more. `auto` takes exact values where all 2^M coalitions fit into that budget:

    M                  1   2   3   4   5   6    7    8    9   10   12   20   50   100   170   200 ...
    2^M                2   4   8  16  32  64  128  256  512 1024 4096  1e6 1e15  1e30  1e51  1e60
    at most            2   4   8  16  32  64   84   96  108  120  144  240  600  1200  2040  2048
    method         exact   .   .   .   .   .    surrogate  .   .    .    .    .     .     .     .

Legend: M players.
"""

EXACT_AT_MOST = 20  # players whose 2^M coalitions can be asked for
AT_MOST = 2048  # coalitions of a round, unless the experiment says otherwise
PER_PLAYER = 12  # coalitions that the surrogate asks for at most
SURROGATE_AT_MOST = 250  # players of whom one is made: with 400, 2,048 coalitions leave an error of 16 % of the spread


def surrogate_budget(players: int, coalitions: int | None) -> int:
    """Coalitions that the surrogate may evaluate; `coalitions` is the experiment's bound, or None."""
    wanted = min(PER_PLAYER * players, AT_MOST) if coalitions is None else coalitions
    return max(wanted, min_coalitions(players))


def choose_method(players: int, coalitions: int | None) -> str:
    """The method that `auto` chooses: exact or surrogate."""
    affordable = players <= EXACT_AT_MOST and 2**players <= surrogate_budget(players, coalitions)
    return "exact" if affordable else "surrogate"


def min_coalitions(players: int) -> int:
    """The fewest coalitions that determine M values: M pairs, the empty and the full one; or all of few players."""
    return 2 * players + 2 if players > 3 else 2**players
