"""In how many of the rounds that estimated Shapley values the estimate converged."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report import look
from fedexp.report.methods import Method
from fedexp.report.runs import Run
from fedexp.report.seconds import CONVERGED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def share(run: Run) -> float | None:
    """The share of converged rounds among those that say so; None where no round does."""
    said = run.column(CONVERGED)
    said = said[~np.isnan(said)]
    return float(said.mean()) if len(said) else None


def figure(methods: Sequence[Method]) -> "Figure | None":
    """A bar a method, the mean over its seeds; a dot a seed."""
    from matplotlib.figure import Figure

    found = [(method, [value for run in method.runs if (value := share(run)) is not None]) for method in methods]
    found = [(method, values) for method, values in found if values]
    if not found:
        return None
    picture = Figure(figsize=(7, 1.2 + 0.4 * len(found)), layout="constrained")
    axes = picture.subplots()
    for place, (method, values) in enumerate(found):
        mean = sum(values) / len(values)
        axes.barh(place, mean, height=0.6, color=look.color(method), alpha=0.85)
        axes.text(1.02, place, f"{mean:.0%}", va="center", fontsize=9)
        if len(values) > 1:
            axes.plot(values, [place] * len(values), "o", color="white", markeredgecolor="#222222", markersize=5)
    axes.set_yticks(range(len(found)), labels=[method.label for method, _ in found], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    look.finish(axes, "Rounds whose Shapley values converged", "Share of rounds", "")
    return picture
