"""Statistics of two methods' paired numbers: differences, an interval, two tests, wins and losses, a verdict.

A value that does not exist is censored: the run never reached the accuracy, so it counts as worse than every run that
did. Differences are taken over the pairs in which both sides reached it; wins and ranks count all pairs.

The verdict comes from a test whose p is corrected over all comparisons. It tests the mean difference by flipping the
signs of the pairs, in all ways up to 16 pairs; if a value is censored there is no mean, and Wilcoxon's signed-rank test
decides. With n pairs no such test can go below 2 / 2^n, so very few pairs get no verdict.

"not resolved" does not mean that two methods are equal. It comes with the smallest mean difference that n pairs with
the same scatter s show in about `POWER` of the cases, F comparisons being corrected for (Bonferroni): of up to 12 pairs
by normal differences that are drawn and whose signs are flipped; of more that of a t-test, (t_{1 - level / (2 F)} +
t_{POWER}) s / sqrt(n) with n - 1 degrees of freedom (the usual approximation of the noncentral t). Legend: n pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy import stats

from fedexp.maths.significance import LEVEL, pairs_needed, student_quantile

POWER = 0.8
FEWEST = 3  # numbers that have an interval: of two it would be wider than anything
RESAMPLES = 99_999  # sign flips that are drawn if there are more than so many
SIMULATED, MOST_SIMULATED = 4000, 12  # samples by which a power is found, and the pairs up to which
MOST_EXACT = 16  # pairs, of which there are fewer ways to flip signs than that
Verdict = Literal["A better", "B better", "not resolved", "too few pairs", "identical"]


@dataclass(frozen=True)
class PairedStatistics:
    """One quantity of two methods over the same pairs; None marks what does not exist."""

    pairs: int
    a: float | None  # mean of A where both sides have the number
    b: float | None
    difference: float | None  # mean of A - B where both sides have it
    low: float | None
    high: float | None
    wins: int  # of A
    ties: int
    losses: int
    only_a: int  # pairs in which only A has the number
    only_b: int
    neither: int
    p_mean: float | None
    p_wilcoxon: float
    for_a: bool  # whether the deciding test leans to A
    spread: float | None = None  # sample standard deviation of A - B; None where some pair has none
    verdict: Verdict = "not resolved"
    resolvable: float | None = None  # smallest mean difference that such pairs show in POWER of the cases

    @property
    def p(self) -> float:
        """The p-value that decides."""
        return self.p_wilcoxon if self.p_mean is None else self.p_mean


def compare(a: Sequence[float | None], b: Sequence[float | None], *, higher_is_better: bool) -> PairedStatistics:
    """Summarises the paired numbers of A and B; p-values are those of this quantity alone."""
    first, second = (np.array(values, dtype=np.float64) for values in (a, b))  # NaN where there is None
    has_a, has_b = ~np.isnan(first), ~np.isnan(second)
    complete = has_a & has_b
    differences = subtract(first, second)[complete]
    ranked = censored_differences(first, second, higher_is_better=higher_is_better)
    gains = ranked if higher_is_better else -ranked
    leaning = gains if complete.all() else np.sign(gains) * stats.rankdata(np.abs(gains))
    low, high = interval(differences)
    return PairedStatistics(
        pairs=len(first),
        a=_mean(first[complete]),
        b=_mean(second[complete]),
        difference=_mean(differences),
        low=low,
        high=high,
        wins=int((gains > 0).sum()),
        ties=int((gains == 0).sum()),
        losses=int((gains < 0).sum()),
        only_a=int((has_a & ~has_b).sum()),
        only_b=int((has_b & ~has_a).sum()),
        neither=int((~has_a & ~has_b).sum()),
        p_mean=sign_flip_p(differences) if complete.all() else None,
        p_wilcoxon=wilcoxon_p(ranked),
        for_a=bool(leaning.sum() > 0),
        spread=float(differences.std(ddof=1)) if complete.all() and len(differences) > 1 else None,
    )


def censored_differences(a: np.ndarray, b: np.ndarray, *, higher_is_better: bool) -> np.ndarray:
    """`[n]`: A - B of `a [n]` and `b [n]` for ranking; largest where only one side has a number, 0 where none has."""
    difference = subtract(a, b)
    beyond = np.nanmax(np.abs(difference), initial=0.0) + 1.0
    ahead = beyond if higher_is_better else -beyond
    only_a, only_b = ~np.isnan(a) & np.isnan(b), np.isnan(a) & ~np.isnan(b)
    difference = np.where(only_a, ahead, np.where(only_b, -ahead, difference))
    return np.nan_to_num(difference, nan=0.0)


def subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a [n]` - `b [n]`, rounded to 12 digits of the largest number: equal differences must be ties in a test of ranks.

    Example:
        >>> subtract(np.array([0.8, 0.7]), np.array([0.7, 0.6])).tolist()
        [0.1, 0.1]
    """
    largest = max(np.nanmax(np.abs(values), initial=0.0) for values in (a, b))
    return np.round(a - b, min(12 - int(np.ceil(np.log10(largest))), 300)) if 0 < largest < np.inf else a - b


def interval(differences: np.ndarray) -> tuple[float | None, float | None]:
    """Student's 95 % interval of the mean of `differences [n]`; None below `FEWEST`. Exact for normal pairs."""
    if len(differences) < FEWEST:
        return None, None
    mean, error = float(differences.mean()), float(stats.sem(differences))
    half = student_quantile(len(differences) - 1) * error
    return mean - half, mean + half


def resolvable(spread: float, pairs: int, family: int) -> float:
    """The mean difference found in `POWER` of the cases, for pairs whose A - B has the standard deviation `spread`."""
    if pairs <= MOST_SIMULATED:
        return _effect_of_flips(pairs, family) * spread
    quantiles = stats.t.ppf([1 - LEVEL / (2 * family), POWER], pairs - 1)
    return float(quantiles.sum() * spread / np.sqrt(pairs))


@lru_cache
def _effect_of_flips(pairs: int, family: int) -> float:
    """The mean of so many normal differences, in deviations, that flips of signs find in `POWER` of the cases."""
    draws = np.random.default_rng(0).standard_normal((SIMULATED, pairs))
    signs = 1.0 - 2.0 * ((np.arange(2 ** (pairs - 1))[:, None] >> np.arange(pairs)) & 1)  # of the first flip: as it is
    sums, moved = draws @ signs.T, signs.sum(axis=1)
    low, high = 0.0, 4.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        extremes = np.abs(sums + middle * moved)
        p = (extremes >= extremes[:, :1] * (1 - 1e-12)).mean(axis=1)
        low, high = (low, middle) if (p <= LEVEL / family).mean() >= POWER else (middle, high)
    return high


def sign_flip_p(differences: np.ndarray) -> float:
    """Two-sided p of the mean of `differences [n]` under flips of their signs; sampled above `MOST_EXACT` pairs."""
    nonzero = differences[differences != 0]
    if len(nonzero) < 2:
        return 1.0
    test: Any = stats.permutation_test(
        (nonzero,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=10_000,
        rng=np.random.default_rng(0),  # the same draws every time, so that the same runs give the same numbers
    )
    return float(test.pvalue)


def wilcoxon_p(differences: np.ndarray) -> float:
    """Two-sided p of Wilcoxon's signed-rank test on `differences [n]`; pairs without a difference are ignored.

    Few tied differences are tested exactly, too, by flipping the signs of their ranks: scipy does that 20 times slower.
    """
    nonzero = differences[differences != 0]
    tied = len(np.unique(np.abs(nonzero))) < len(nonzero)
    if len(nonzero) < 2 or (tied and 2 ** len(nonzero) <= RESAMPLES):
        return sign_flip_p(np.sign(nonzero) * stats.rankdata(np.abs(nonzero)))
    test: Any = stats.wilcoxon(nonzero)
    return float(test.pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the k-th smallest of m is multiplied by m - k + 1, never falls, and is at most 1.

    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    """
    order = np.argsort(p)
    steps = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted.tolist()


def add_verdicts(results: Sequence[PairedStatistics]) -> list[PairedStatistics]:
    """All comparisons with verdicts, their p-values corrected together."""
    family = len(results)
    decisive = holm([result.p for result in results])
    ranks = holm([result.p_wilcoxon for result in results])
    return [
        replace(
            result,
            p_mean=None if result.p_mean is None else p,
            p_wilcoxon=p if result.p_mean is None else rank,
            verdict=_verdict(result, p, family),
            resolvable=resolvable(result.spread, result.pairs, family)
            if result.spread is not None and result.pairs >= pairs_needed(family)
            else None,  # so few pairs show nothing, however large
        )
        for result, p, rank in zip(results, decisive, ranks, strict=True)
    ]


def smallest_p(pairs: int, family: int) -> float:
    """The smallest p of an exact test that n pairs can have, 2 / 2^n, after the correction for `family` comparisons."""
    return min(1.0, 2.0 ** (1 - pairs) * family)


def _verdict(result: PairedStatistics, p: float, family: int) -> Verdict:
    if result.wins == result.losses == 0 and result.neither < result.pairs:
        return "identical"
    if p <= LEVEL:
        return "A better" if result.for_a else "B better"
    return "too few pairs" if result.pairs < pairs_needed(family) else "not resolved"


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
