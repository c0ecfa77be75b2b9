"""Accuracy and loss on the test data over rounds, and the accuracy over simulated seconds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedexp.report import bands, look
from fedexp.report.methods import Method
from fedexp.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def over_rounds(methods: Sequence[Method]) -> "Figure | None":
    """Accuracy left, loss right."""
    figure = look.figure(10, 4, methods)
    left, right = figure.subplots(1, 2, sharex=True)
    drawn = bands.draw(left, methods, lambda run: _evaluated(run, "test_accuracy"))
    drawn += bands.draw(right, methods, lambda run: _evaluated(run, "test_loss"))
    look.finish(left, bands.titled("Test accuracy", methods), "Round", "Accuracy")
    look.finish(right, bands.titled("Test loss", methods), "Round", "Mean loss of an example")
    look.whole(left.xaxis)
    look.legend(figure, [method for method in methods if method in drawn])
    return figure if drawn else None


def over_seconds(methods: Sequence[Method]) -> "Figure | None":
    """Accuracy by the simulated clock, of the methods that have one."""
    figure = look.figure(7, 4, methods)
    axes = figure.subplots()
    drawn = bands.draw(axes, methods, lambda run: bands.known(run.column("sim_s"), run.column("test_accuracy")))
    axes.set_xlim(left=0)
    look.finish(axes, bands.titled("Test accuracy", drawn), "Simulated seconds", "Accuracy")
    look.legend(figure, drawn)
    return figure if drawn else None


def _evaluated(run: Run, column: str) -> bands.Curve:
    return bands.known(run.rounds.astype(float), run.column(column))
