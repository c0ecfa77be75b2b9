"""The course of a quantity for each method: the mean line over its seeds, in the band from the least to the greatest.

Between two known values of a run lies a straight line, so runs that are evaluated at different rounds or times can be
averaged from where the last of them begins. Where some have ended (unfinished, stopped early) the line is dotted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report import look
from fedexp.report.methods import Method
from fedexp.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Band:
    """Over positions `x`: mean, least and greatest of the runs that are there, and whether all of them are."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    complete: np.ndarray


def known(x: np.ndarray, y: np.ndarray) -> Curve:
    """The points of a curve that exist."""
    exists = np.isfinite(x) & np.isfinite(y)
    return x[exists], y[exists]


def band(curves: Sequence[Curve]) -> Band | None:
    """The band of a method's curves; None where they have no points."""
    curves = [(x, y) for x, y in curves if len(x)]
    if not curves:
        return None
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    grid = grid[grid >= max(x[0] for x, _ in curves)]
    values = np.stack([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in curves])
    there = np.isfinite(values).sum(axis=0)
    grid, values, there = grid[there > 0], values[:, there > 0], there[there > 0]
    return Band(
        x=grid,
        mean=np.nanmean(values, axis=0),
        low=np.nanmin(values, axis=0),
        high=np.nanmax(values, axis=0),
        complete=there == len(curves),
    )


def of(method: Method, curve: Callable[[Run], Curve]) -> Band | None:
    """The band of a method's runs."""
    return band([curve(run) for run in method.runs])


def draw(axes: "Axes", methods: Sequence[Method], curve: Callable[[Run], Curve]) -> list[Method]:
    """Draws a band for each method and returns the methods that have one."""
    found = [(method, one) for method in methods if (one := of(method, curve)) is not None]
    for method, one in found:
        shade(axes, one, method)
        line(axes, one, method)
    return [method for method, _ in found]


def shade(axes: "Axes", found: Band, method: Method) -> None:
    """Fills the range over the runs."""
    axes.fill_between(found.x, found.low, found.high, color=look.color(method), alpha=0.15, linewidth=0)


def line(axes: "Axes", found: Band, method: Method) -> None:
    """The mean, dotted where not all runs are there; a point where there is but one position."""
    style = look.line(method)
    axes.plot(found.x, np.where(found.complete, found.mean, np.nan), **style)
    if len(found.x) == 1:
        axes.plot(found.x, found.mean, "o", color=style["color"])
    partly = np.convolve(~found.complete, [1, 1, 1], mode="same") > 0  # a point more, so that it joins the solid line
    if partly.any():
        axes.plot(found.x, np.where(partly, found.mean, np.nan), **{**style, "linestyle": ":"})


def titled(title: str, methods: Sequence[Method]) -> str:
    """Says what line and band are, where there is a band."""
    return f"{title}: mean and range over seeds" if any(len(method.runs) > 1 for method in methods) else title
