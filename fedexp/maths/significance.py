"""At which level a difference counts as more than chance, and what follows from it."""

from functools import cache

import numpy as np

LEVEL = 0.05


@cache
def student_quantile(freedom: float) -> float:
    """The half width of Student's two-sided interval at `LEVEL`, a scalar in standard errors."""
    from scipy import stats

    return float(stats.t.ppf(1 - LEVEL / 2, freedom))


def pairs_needed(family: int) -> int:
    """The fewest pairs n (a scalar) for which the smallest possible p, 2 / 2^n, counts among `family` comparisons."""
    return int(np.ceil(1 + np.log2(family / LEVEL)))
