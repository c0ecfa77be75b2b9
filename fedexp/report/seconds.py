"""Seconds of each round, with the rounds marked whose Shapley values did not converge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report import bands, look
from fedexp.report.methods import Method
from fedexp.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONVERGED = "selector.converged"


def simulated(methods: Sequence[Method]) -> "Figure | None":
    """By the simulated clock, of the methods that have one."""
    return _figure([method for method in methods if _timed(method)], "sim_s", "Simulated seconds of a round")


def host(methods: Sequence[Method]) -> "Figure | None":
    """By the clock of the computer that ran them, of the methods without a simulated clock."""
    return _figure([method for method in methods if not _timed(method)], "host_s", "Seconds of a round (host)")


def each(run: Run, column: str) -> bands.Curve:
    """Rounds, and what a cumulative column of seconds grew by in each; the first counts from zero."""
    rounds, total = run.rounds.astype(float), run.column(column)
    return bands.known(rounds, np.diff(total, prepend=0.0))


def _timed(method: Method) -> bool:
    return all(run.timed for run in method.runs)


def _figure(methods: Sequence[Method], column: str, title: str) -> "Figure | None":
    figure = look.figure(8, 4, methods)
    axes = figure.subplots()
    drawn = bands.draw(axes, methods, lambda run: each(run, column))
    if not drawn:
        return None
    marked = [mark for method in drawn for mark in _marks(axes, method, column)]
    look.finish(axes, bands.titled(title, drawn), "Round", "Seconds")
    look.whole(axes.xaxis)
    axes.set_ylim(bottom=0)
    look.legend(figure, drawn, _explained(marked))
    return figure


def _marks(axes: "Axes", method: Method, column: str) -> list[object]:
    """A cross at each round of each run that did not converge."""
    marks = []
    for run in method.runs:
        rounds, spent = each(run, column)
        missed = np.isin(rounds, run.rounds[run.column(CONVERGED) == 0])
        if missed.any():
            marks += axes.plot(rounds[missed], spent[missed], "x", color=look.color(method), markersize=5)
    return marks


def _explained(marked: Sequence[object]) -> list[object]:
    from matplotlib.lines import Line2D

    label = "Shapley values not converged"
    return [Line2D([], [], marker="x", color="#444444", linestyle="", markersize=5, label=label)] if marked else []
