"""Numbers that summarise a run, computed from the columns of its metrics.

A column has one entry for each round; NaN or None marks a round that was not evaluated. A number that does not exist is
None. RoA is the first round with an accuracy of at least x, ToA the cumulative time until then.
"""

from collections.abc import Iterable

import numpy as np


def area_under(values: Iterable[float | None]) -> float | None:
    """Trapezoid rule with one round as the unit, from the first to the last evaluated round.

    Rounds that were not evaluated are bridged by a straight line. None with fewer than two evaluated rounds: an unknown
    area is not a small one.
    """
    curve = _column(values)
    rounds = np.flatnonzero(~np.isnan(curve))
    if len(rounds) < 2:
        return None
    heights = curve[rounds]
    return float((np.diff(rounds) * (heights[1:] + heights[:-1])).sum() / 2)


def rounds_to(accuracy: Iterable[float | None], threshold: float, rounds: Iterable[int]) -> int | None:
    """The round (as the column `rounds` counts, from 1) in which `accuracy` is first at or above `threshold`."""
    first = _first_reached(accuracy, threshold)
    return None if first is None else int(list(rounds)[first])


def time_to(
    accuracy: Iterable[float | None], seconds_cumulative: Iterable[float | None], threshold: float
) -> float | None:
    """The cumulative seconds at the end of the round in which `accuracy` is first at or above `threshold`."""
    first = _first_reached(accuracy, threshold)
    seconds = _column(seconds_cumulative)
    return None if first is None or np.isnan(seconds[first]) else float(seconds[first])


def best(values: Iterable[float | None]) -> float | None:
    """The largest value."""
    known = _known(values)
    return float(known.max()) if len(known) else None


def final(values: Iterable[float | None]) -> float | None:
    """The last value that exists."""
    known = _known(values)
    return float(known[-1]) if len(known) else None


def _first_reached(accuracy: Iterable[float | None], threshold: float) -> int | None:
    reached = np.flatnonzero(_column(accuracy) >= threshold)
    return int(reached[0]) if len(reached) else None


def _known(values: Iterable[float | None]) -> np.ndarray:
    column = _column(values)
    return column[~np.isnan(column)]


def _column(values: Iterable[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
