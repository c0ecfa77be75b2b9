"""KernelSHAP by paired sampling (Covert & Lee 2021, arXiv 2012.01536): sizes by the Shapley kernel.

A coalition is drawn with probability in proportion to its kernel weight: first its size s, with p(s) in proportion to
1 / (s (M - s)), then one of the C(M, s) sets, together with its complement. All drawn pairs count the same.
Sizes from 1 upwards are enumerated instead of drawn as long as the sample would hold as many pairs of the size as there
are (as the authors of KernelSHAP do in their package). The rest of the budget is drawn from the other sizes: with
replacement, or without it if only one size is left. With all pairs the values are exact.
Legend: M players.
"""

import numpy as np

from fedexp.maths.shapley.sampling.pairs import Stratum, count_pairs, distinct_pairs, kernel_weight, random_pairs


def kernel_pairs(players: int, pairs: int, rng: np.random.Generator) -> list[Stratum]:
    """At most `pairs` pairs: the complete sizes, and one stratum sampled from the others."""
    strata, sizes, remaining = [], list(range(1, players // 2 + 1)), pairs
    while sizes:
        size, weight = sizes[0], np.array([kernel_weight(players, s) for s in sizes])
        population = count_pairs(players, size)
        if len(sizes) > 1 and remaining * weight[0] / weight.sum() < population:
            drawn = rng.choice(sizes, size=remaining, p=weight / weight.sum())
            drawn_stratum = Stratum(random_pairs(players, drawn, rng), np.inf, float(weight.sum()))
            return [*strata, drawn_stratum] if remaining else strata
        some = distinct_pairs(players, size, min(remaining, population), rng)
        strata += [Stratum(some, population, float(weight[0]))] if len(some) else []
        sizes, remaining = sizes[1:], remaining - len(some)
    return strata
