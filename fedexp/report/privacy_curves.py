"""What privacy costs: accuracy over rounds with epsilon above them, and over epsilon where that is another picture.

Methods whose ledgers agree round by round share one axis of epsilons. Where ledgers differ no such axis is true for
all of them, and a second panel has the accuracy over the epsilon that was spent. Methods without a finite epsilon lie
there as horizontal lines at their last accuracy.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.core import csv_table
from fedexp.core.files import replacing
from fedexp.maths.metrics import final
from fedexp.report import bands, epsilon, look
from fedexp.report.measures import statistic
from fedexp.report.methods import Method, group
from fedexp.report.one_at_a_time import families
from fedexp.report.runs import Run, collect, find

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figures(methods: Sequence[Method]) -> "Iterator[tuple[str, str, Figure]]":
    """Names, titles and figures: one for each key if the methods vary one at a time, else one for all methods."""
    around = families(methods)
    for family in around:
        if (drawn := figure(family.methods)) is not None:
            yield f"epsilon_{family.key.replace('.', '_')}", f"Privacy and accuracy by {family.key}", drawn
    if not around and (drawn := figure(methods)) is not None:
        yield "epsilon", "Privacy and accuracy", drawn


def figure(methods: Sequence[Method]) -> "Figure | None":
    """One panel where the ledgers agree, else two; None where nothing is protected."""
    runs = [run for method in methods for run in method.runs if epsilon.protected(run)]
    if not runs:
        return None
    course = epsilon.shared(runs)
    drawn = look.figure(7 if course else 11, 4.2, methods)
    left, *right = drawn.subplots(1, 1 if course else 2, sharey=True, squeeze=False)[0]
    bands.draw(left, methods, lambda run: bands.known(run.rounds.astype(float), run.column("test_accuracy")))
    look.finish(left, bands.titled("Test accuracy by round", methods), "Round", "Accuracy")
    look.whole(left.xaxis)
    if course:
        epsilon.above(left, *course, epsilon.label(runs))
    for axes in right:
        _over_epsilon(axes, methods)
        look.finish(axes, bands.titled("Test accuracy by epsilon spent", methods), epsilon.label(runs), "")
    look.legend(drawn, methods)
    return drawn


def conclude(folder: Path) -> list[Path]:
    """Writes the figures of a sweep into its folder, if a ledger was kept in it; returns their files."""
    if not any(epsilon.COLUMN in csv_table.frame(run / "metrics.csv") for run in find(folder)):
        return []
    written = []
    for name, _, drawn in figures(group(collect([folder])[0])):
        written.append(folder / f"{name}.png")
        with replacing(written[-1]) as partial:
            drawn.savefig(partial, format="png", dpi=150)
    return written


def _over_epsilon(axes: "Axes", methods: Sequence[Method]) -> None:
    bands.draw(axes, methods, _by_epsilon)
    for method in methods:
        last = statistic([final(run.column("test_accuracy")) for run in method.runs]).mean
        if last is not None and not any(epsilon.protected(run) for run in method.runs):
            axes.axhline(last, **look.line(method))


def _by_epsilon(run: Run) -> bands.Curve:
    return bands.known(run.column(epsilon.COLUMN), run.column("test_accuracy"))
