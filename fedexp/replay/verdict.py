"""Whether our numbers are those that were published: one rule for every cell of every table.

A published number comes with its spread over runs, or it is a single run; then the table states how far another run may
lie from it. With a spread s_1 over n_1 runs and ours s_2 over n_2, Welch's interval decides:

    d = mean_2 - mean_1,  e^2 = s_1^2 / n_1 + s_2^2 / n_2,  d -+ t_{0.975, v} e,
    v = e^4 / (s_1^4 / (n_1^2 (n_1 - 1)) + s_2^4 / (n_2^2 (n_2 - 1)))

It is `outside` if the interval has no difference that rounding the published number could make, `inside` if it has one
and reaches at most three published standard deviations to either side, else `not resolved`. So a right cell is called
outside in 5 of 100 tables. With three published runs the interval cannot be much narrower, however many ours are.

A single published run gives a range: value / factor to value * factor, or value -+ within. Student's 95 % interval of
our mean is `inside` if it lies within the range, `outside` if it misses it, else `not resolved`.

A run that did not reach an accuracy counts as if it had done so in the round after its last, which is too early. So
such a cell may be outside on the far side, but never inside. Published "more than v" (`beyond`) is the range from v up,
where a run that did not reach it in v rounds is inside.

Where others ran the same setting and their numbers contradict the published one by the same yardstick, the cell is
`disputed`, and it is told whose numbers ours agree with.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

Outcome = Literal["inside", "outside", "disputed", "not resolved", "no number", "not run"]

LEVEL = 0.05
NARROW = 3.0  # published standard deviations to either side, beyond which an interval says too little


@dataclass(frozen=True)
class Published:
    """A number that somebody published, and how far it may be off.

    `spread` is the standard deviation over `runs` runs; without it `factor` (>= 1) or `within` (>= 0) gives the range.
    `rounding` is half a unit of its last digit.
    """

    value: float
    spread: float | None = None
    runs: int | None = None
    factor: float | None = None
    within: float | None = None
    rounding: float = 0.0
    beyond: bool = False

    def range(self) -> tuple[float, float]:
        """The values that another run may have by the stated factor or distance."""
        if self.beyond:
            return self.value, math.inf
        if self.factor is not None:
            return self.value / self.factor - self.rounding, self.value * self.factor + self.rounding
        off = (self.within or 0.0) + self.rounding
        return self.value - off, self.value + off


@dataclass(frozen=True)
class OurValues:
    """Our values, one a seed; None where a run did not get there within `limit`."""

    values: tuple[float | None, ...]
    limit: float = math.inf

    @property
    def is_censored(self) -> bool:
        """Whether some run did not reach the measured value."""
        return None in self.values

    def bounds(self) -> np.ndarray:
        """The values `[n]`; for a run that did not get there, the least that it would be."""
        return np.array([self.limit + 1 if value is None else value for value in self.values])


@dataclass(frozen=True)
class Verdict:
    """The outcome, and our mean with its 95 % interval."""

    outcome: Outcome
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    agrees: tuple[str, ...] = ()  # of a disputed cell: whose numbers ours agree with


def judge(published: Published | None, ours: OurValues, replications: Sequence[tuple[str, Published]] = ()) -> Verdict:
    """The verdict on a cell; `replications` are the numbers of others who ran the same setting, by name."""
    if not ours.values:
        return Verdict("not run")
    mean, low, high = interval(ours.bounds())
    if published is None:
        return Verdict("no number", mean, low, high)
    outcome = compare_with(published, ours)
    if not any(contradict(published, replication) for _, replication in replications):
        return Verdict(outcome, mean, low, high)
    all_published = [("the source", published), *replications]
    agrees = tuple(name for name, replication in all_published if compare_with(replication, ours) == "inside")
    return Verdict("disputed", mean, low, high, agrees)


def compare_with(published: Published, ours: OurValues) -> Outcome:
    """Compares our values with one published number: inside, outside or not resolved."""
    if published.spread is not None and published.runs is not None and published.runs > 1:
        return _by_spread(published, published.spread, published.runs, ours)
    return _by_range(*published.range(), published.beyond, ours)


def contradict(published: Published, replication: Published) -> bool:
    """Whether two published numbers cannot both be right: neither lies where the other may be."""
    return not (_allows(published, replication.value) or _allows(replication, published.value))


def _allows(published: Published, value: float) -> bool:
    if published.spread is None:
        low, high = published.range()
        return low <= value <= high
    return abs(value - published.value) <= NARROW * published.spread + published.rounding


def _by_spread(published: Published, spread: float, runs: int, ours: OurValues) -> Outcome:
    values = ours.bounds()
    if len(values) < 2:
        return "not resolved"
    d, half = difference(published.value, spread, runs, values)
    if d - half > published.rounding or d + half < -published.rounding:
        return "outside" if d > 0 or not ours.is_censored else "not resolved"
    narrow = half <= NARROW * spread + published.rounding
    return "inside" if narrow and not ours.is_censored else "not resolved"


def _by_range(least: float, most: float, beyond: bool, ours: OurValues) -> Outcome:
    _, low, high = interval(ours.bounds())
    if low is None or high is None:
        return "not resolved"
    if low > most or (high < least and not ours.is_censored):
        return "outside"
    within = least <= low and high <= most
    return "inside" if within and (beyond or not ours.is_censored) else "not resolved"


def difference(value: float, spread: float, runs: int, ours: np.ndarray) -> tuple[float, float]:
    """Our mean of `ours [n]` less a mean with this spread over so many runs, and half of Welch's 95 % interval."""
    shares = np.array([spread**2 / runs, ours.var(ddof=1) / len(ours)])
    total = float(shares.sum())
    if total == 0:
        return float(ours.mean()) - value, 0.0
    freedom = total**2 / float((shares**2 / (np.array([runs, len(ours)]) - 1)).sum())
    return float(ours.mean()) - value, float(stats.t.ppf(1 - LEVEL / 2, freedom)) * math.sqrt(total)


def interval(values: np.ndarray) -> tuple[float, float | None, float | None]:
    """The mean of `values [n]` and Student's 95 % interval of it; no interval of a single value."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = float(stats.t.ppf(1 - LEVEL / 2, len(values) - 1)) * float(stats.sem(values))
    return mean, mean - half, mean + half
