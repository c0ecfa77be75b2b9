"""Whether our numbers are those that were published: one rule for every cell of every table.

The question is whether the published number could be a run of ours, or the mean of as many runs of ours as it was
taken over. With n_1 published runs (1 where a single number is given) and n_2 of ours, of mean m and deviation s, it
should lie in the prediction interval

    m -+ t_{0.975, f} s sqrt(1 / n_1 + 1 / n_2)

which holds 95 of 100 right numbers whatever s is, if runs are about normal. A number outside of it `differs`, all
others `agree`; half the width tells what the cell can see. Counts of rounds are compared by their logarithms, since
their spread grows with them and none is below 1.

s is taken over our runs and the published ones together (f = n_2 - 1, or n_1 + n_2 - 2), and moderated by the other
cells of the same table and quantity, as a deviation over three runs is hardly known: Smyth's empirical Bayes (2004,
"Linear models and empirical Bayes methods", section 6.2) gives a usual variance s_0^2 and its weight f_0 from how much
the variances of all cells scatter, and then

    s^2 <- (f_0 s_0^2 + f s^2) / (f_0 + f),  f <- f_0 + f.

Where all cells scatter alike this is one deviation for the table, and where they do not, each cell keeps its own.

Where a published accuracy was measured on few examples n, the variance of that draw, m (1 - m) / n, is added to that of
the published run: our runs do not show it.

A run that did not reach an accuracy counts as if it had done so in the round after its last, which is too early. So
such a cell may differ on the far side, but never agree. "More than v" (`beyond`) agrees if v, or more, could be ours.

There is no verdict before the planned seeds, but `so far`. Where others ran the same setting and their numbers cannot
be runs of one setting with the published one, the cell is `disputed`, and it is told whose numbers ours agree with.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize, special, stats

from fedexp.maths.significance import student_quantile
from fedexp.replay.published import Published

Outcome = Literal["agrees", "differs", "disputed", "not resolved", "so far", "no number", "not run"]

FEWEST_CELLS = 4  # from which the usual variance of a table is taken


@dataclass(frozen=True)
class OurValues:
    """Our values, one a seed; None where a run did not get there within `limit`. Counts are positive."""

    values: tuple[float | None, ...]
    limit: float = math.inf
    counts: bool = False
    planned: int = 0

    @property
    def is_censored(self) -> bool:
        """Whether some run did not reach the measured value."""
        return None in self.values

    def bounds(self) -> np.ndarray:
        """The values `[n]`; for a run that did not get there, the least that it would be."""
        return np.array([self.limit + 1 if value is None else value for value in self.values], float)


@dataclass(frozen=True)
class Scatter:
    """A variance and its degrees of freedom, which may be infinite."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Verdict:
    """The outcome, our mean with its 95 % interval, and the range in which the published number should lie."""

    outcome: Outcome
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    expected: tuple[float, float] | None = None
    agrees: tuple[str, ...] = ()  # of a disputed cell: whose numbers ours agree with


def judge(
    published: Published | None,
    ours: OurValues,
    replications: Sequence[tuple[str, Published]] = (),
    usual: Scatter | None = None,
) -> Verdict:
    """The verdict on a cell.

    `replications` are the numbers of others who ran the same setting, by name; `usual` is the usual scatter of the
    table's cells.
    """
    if not ours.values:
        return Verdict("not run")
    mean, low, high = interval(ours.bounds())
    if published is None:
        return Verdict("no number", mean, low, high)
    expected = expected_range(published, ours, usual)
    if len(ours.values) < ours.planned:
        return Verdict("so far", mean, low, high, expected)
    outcome = _compare(published, ours, expected)
    if not any(_contradict(published, replication, ours, usual) for _, replication in replications):
        return Verdict(outcome, mean, low, high, expected)
    numbers = [("the source", published), *replications]
    ranges = [(name, number, expected_range(number, ours, usual)) for name, number in numbers]
    agrees = tuple(name for name, number, limits in ranges if _compare(number, ours, limits) == "agrees")
    return Verdict("disputed", mean, low, high, expected, agrees)


def expected_range(published: Published, ours: OurValues, usual: Scatter | None = None) -> tuple[float, float] | None:
    """The range in which the published number should lie; None where too few runs tell how they scatter."""
    scatter = moderate(measure_scatter(published, ours), usual)
    if scatter is None:
        return None
    values = _scale(ours.bounds(), ours)
    half = _half_width(scatter, published.runs, len(values), draw_variance(published, float(values.mean())))
    low, high = values.mean() - half, values.mean() + half
    return (math.exp(low), math.exp(high)) if ours.counts else (float(low), float(high))


def _compare(published: Published, ours: OurValues, expected: tuple[float, float] | None) -> Outcome:
    if expected is None:
        return "not resolved"
    low, high = expected
    if published.value + published.rounding < low and not published.beyond:
        return "differs"
    if published.value - published.rounding > high:
        return "not resolved" if ours.is_censored else "differs"
    reached_beyond = published.beyond and published.value <= ours.limit + 1
    return "not resolved" if ours.is_censored and not reached_beyond else "agrees"


def _contradict(first: Published, second: Published, ours: OurValues, usual: Scatter | None) -> bool:
    """Whether two published numbers cannot both be of one setting that scatters as ours does."""
    scatter = moderate(measure_scatter(first, ours), usual)
    if scatter is None:
        return False
    off = abs(np.diff(_scale(np.array([first.value, second.value]), ours)).item())
    rounding = 0.0 if ours.counts else first.rounding + second.rounding
    mean = float(_scale(ours.bounds(), ours).mean())
    draws = draw_variance(first, mean) + draw_variance(second, mean)
    return off - rounding > _half_width(scatter, first.runs, second.runs, draws)


def measure_scatter(published: Published | None, ours: OurValues) -> Scatter | None:
    """The variance over our runs and the published ones together; None of a single run."""
    values = _scale(ours.bounds(), ours)
    squares, freedom = float(values.var()) * len(values), len(values) - 1
    if published is not None and published.spread is not None and not ours.counts:
        squares += published.spread**2 * (published.runs - 1)
        freedom += published.runs - 1
    return Scatter(squares / freedom, freedom) if freedom > 0 else None


def usual_scatter(scatters: Iterable[Scatter | None]) -> Scatter | None:
    """The usual variance of a table's cells and its degrees of freedom, by how much their variances scatter.

    Cells without any scatter say nothing about that of the others. None of fewer than four cells.
    """
    positive = [scatter for scatter in scatters if scatter is not None and scatter.variance > 0]
    if len(positive) < FEWEST_CELLS:
        return None
    halves = np.array([scatter.freedom for scatter in positive]) / 2
    logarithms = np.log([scatter.variance for scatter in positive]) - special.digamma(halves) + np.log(halves)
    excess = float(logarithms.var(ddof=1) - special.polygamma(1, halves).mean())
    if excess <= 0:
        return Scatter(math.exp(logarithms.mean()), math.inf)
    half = optimize.root_scalar(lambda x: float(special.polygamma(1, x)) - excess, bracket=(1e-6, 1e9)).root
    return Scatter(math.exp(logarithms.mean() + float(special.digamma(half)) - math.log(half)), 2 * half)


def moderate(scatter: Scatter | None, usual: Scatter | None) -> Scatter | None:
    """A cell's scatter, moderated by the usual one of its table."""
    if scatter is None or usual is None:
        return scatter or usual
    if math.isinf(usual.freedom):
        return usual
    freedom = scatter.freedom + usual.freedom
    return Scatter((scatter.freedom * scatter.variance + usual.freedom * usual.variance) / freedom, freedom)


def draw_variance(published: Published, accuracy: float) -> float:
    """The variance of the published number by the draw of the few examples that it was measured on."""
    return 0.0 if published.examples is None else max(0.0, accuracy * (1 - accuracy)) / published.examples


def _half_width(scatter: Scatter, runs: int, other_runs: int, added: float = 0.0) -> float:
    return student_quantile(scatter.freedom) * math.sqrt(scatter.variance * (1 / runs + 1 / other_runs) + added)


def _scale(values: np.ndarray, ours: OurValues) -> np.ndarray:
    return np.log(values) if ours.counts else values


def interval(values: np.ndarray) -> tuple[float, float | None, float | None]:
    """The mean of `values [n]` and Student's 95 % interval of it; no interval of a single value."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = student_quantile(len(values) - 1) * float(stats.sem(values))
    return mean, mean - half, mean + half
