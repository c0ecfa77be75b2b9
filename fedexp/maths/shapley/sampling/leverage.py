"""Leverage SHAP (Musco & Witter 2024, arXiv 2410.01917): coalitions drawn by their leverage in the regression.

The leverage score of a coalition of s players in the weighted regression is 1 / C(M, s) (lemma 3.2), so every size is
sampled equally often, while the Shapley kernel prefers the smallest and largest. Pairs are drawn without
replacement; a pair of size s is drawn with probability min(1, c / C(M, s)), c such that the budget is met, and its
weight is its kernel weight over that probability.
Deviation: the number of pairs of a size is fixed at its expectation, rounded, where the paper draws it from a binomial
distribution: the probabilities are the same, the budget is kept exactly, and the variance is smaller.
Legend: M players.
"""

import numpy as np

from fedexp.maths.shapley.sampling.pairs import Stratum, count_pairs, distinct_pairs, kernel_weight


def leverage_pairs(players: int, pairs: int, rng: np.random.Generator) -> list[Stratum]:
    """At most `pairs` pairs, a stratum for each size."""
    sizes = range(1, players // 2 + 1)
    counts = allocation(players, pairs)
    return [
        Stratum(
            distinct_pairs(players, size, int(count), rng), count_pairs(players, size), kernel_weight(players, size)
        )
        for size, count in zip(sizes, counts, strict=True)
        if count
    ]


def allocation(players: int, pairs: int) -> np.ndarray:
    """How many pairs of each size 1, 2, ... M / 2, `[M / 2]`: equally many coalitions of every size, or all there are.

    The size M / 2 counts half, as one pair of it holds two coalitions of that size. Pairs lost by rounding go to the
    smallest sizes that are not complete.
    """
    sizes = range(1, players // 2 + 1)
    most = np.array([float(count_pairs(players, size)) for size in sizes])
    share = np.array([0.5 if 2 * size == players else 1.0 for size in sizes])
    if pairs >= most.sum():
        return most.astype(np.int64)
    counts, open_sizes = np.zeros(len(most)), np.ones(len(most), dtype=bool)
    while True:
        level = (pairs - most[~open_sizes].sum()) / share[open_sizes].sum()
        full = open_sizes & (most <= level * share)
        if not full.any():
            break
        open_sizes &= ~full
    counts = np.where(open_sizes, np.floor(level * share), most).astype(np.int64)
    spare = np.flatnonzero(counts < most)[: pairs - int(counts.sum())]
    counts[spare] += 1
    return counts
