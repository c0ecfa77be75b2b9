"""Seconds of each round, with the rounds marked whose Shapley values did not converge."""

from collections.abc import Callable, Sequence

import numpy as np

from fedexp.report.draw import bands, style
from fedexp.report.draw.section import Picture
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run

CONVERGED = "selector.converged"
CROSSES = "A cross, if any, marks a round of one seed in which the Shapley values did not converge."


def picture(spec: bands.PlotSpec, methods: Sequence[Method], column: str) -> Picture | None:
    """A band for each method of what a cumulative column of seconds grew by; a cross where a run did not converge."""
    drawn = bands.picture(spec, methods, seconds_by_round(column))
    for method in drawn.methods if drawn else ():
        for run in method.runs:
            rounds, spent = seconds_by_round(column)(run)
            missed = np.isin(rounds, run.rounds[run.column(CONVERGED) == 0])
            if drawn and missed.any():
                line_style = {"color": style.color(method), "markersize": 5, "gid": style.gid(method)}
                drawn.figure.axes[0].plot(rounds[missed], spent[missed], "x", **line_style)
    return drawn


def seconds_by_round(column: str) -> Callable[[Run], bands.Curve]:
    """Rounds, and what a cumulative column of seconds grew by in each; the first counts from zero."""
    return lambda run: bands.finite_points(run.rounds.astype(float), np.diff(run.column(column), prepend=0.0))
