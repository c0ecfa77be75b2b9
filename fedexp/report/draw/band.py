"""A quantity over the rounds (or seconds, megabytes, ranks): a curve of each run, and the band of a method's curves.

Between two known values of a run lies a straight line, so runs that are evaluated at different rounds or times can be
averaged from where the last of them begins.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fedexp.report.read.runs import Run

Curve = tuple[np.ndarray, np.ndarray]


class Band(NamedTuple):
    """Mean, minimum and maximum over runs at the positions `x`; `complete` where all runs have a value."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    complete: np.ndarray

    @property
    def end(self) -> int:
        """The last position at which all runs have a value, else the last position."""
        complete = np.flatnonzero(self.complete)
        return int(complete[-1]) if len(complete) else len(self.x) - 1


def finite_points(x: np.ndarray, y: np.ndarray) -> Curve:
    """The points `[m]` of a curve `x [n]`, `y [n]` that exist."""
    exists = np.isfinite(x) & np.isfinite(y)
    return x[exists], y[exists]


def by_round(column: str) -> Callable[[Run], Curve]:
    """A column of metrics.csv over the rounds."""
    return lambda run: finite_points(run.rounds.astype(float), run.column(column))


def by_column(x_column: str, y_column: str) -> Callable[[Run], Curve]:
    """A column of metrics.csv over another one."""
    return lambda run: finite_points(run.column(x_column), run.column(y_column))


def average_curves(curves: Sequence[Curve]) -> Band | None:
    """The band of a method's curves; None where they have no points, or no position that lies on one of them."""
    curves = [(x, y) for x, y in curves if len(x)]
    if not curves:
        return None
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    grid = grid[grid >= max(x[0] for x, _ in curves)]
    values = np.stack([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in curves])
    run_counts = np.isfinite(values).sum(axis=0)
    grid, values, run_counts = grid[run_counts > 0], values[:, run_counts > 0], run_counts[run_counts > 0]
    if not len(grid):  # a damaged table, whose positions do not ascend
        return None
    return Band(
        x=grid,
        mean=np.nanmean(values, axis=0),
        low=np.nanmin(values, axis=0),
        high=np.nanmax(values, axis=0),
        complete=run_counts == len(curves),
    )


def choose_evenly(count: int, most: int) -> np.ndarray:
    """At most `most` of the positions 0 to `count` - 1, evenly, the first and the last among them; int64 `[chosen]`."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, most))).astype(np.int64))


def thin_out(method_band: Band, most: int) -> Band:
    """At most so many points of a band, evenly chosen by their order, the first and the last among them."""
    if len(method_band.x) <= most:
        return method_band
    chosen = choose_evenly(len(method_band.x), most)
    return Band(*(column[chosen] for column in method_band))
