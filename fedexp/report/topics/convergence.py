"""In how many of the rounds that estimated Shapley values the estimate converged."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.draw import style
from fedexp.report.draw.section import Picture
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.topics.seconds import CONVERGED

_MOST = 40  # bars
_CAPTION = "The bar is the mean over the seeds, a dot is a seed."


def converged_share(run: Run) -> float | None:
    """The share of converged rounds among those that say so; None where no round does."""
    converged = run.column(CONVERGED)
    converged = converged[~np.isnan(converged)]
    return float(converged.mean()) if len(converged) else None


def picture(methods: Sequence[Method]) -> Picture | None:
    """A bar a method, the mean over its seeds; a dot a seed."""
    shares = [
        (method, [value for run in method.runs if (value := converged_share(run)) is not None]) for method in methods
    ]
    shares = [(method, values) for method, values in shares if values]
    if not 0 < len(shares) <= _MOST:
        return None
    title = "Rounds whose Shapley values converged"
    figure, axes = style.row_canvas(title, "Share of rounds", len(shares), 1.2)
    for position, (method, values) in enumerate(shares):
        mean, name = sum(values) / len(values), style.gid(method)
        axes.barh(position, mean, height=0.6, color=style.color(method), alpha=0.85, gid=name)
        axes.text(1.02, position, f"{mean:.0%}", va="center", fontsize=9, gid=name)
        if len(values) > 1:
            dots = {"color": style.PAPER, "markeredgecolor": style.INK, "markersize": 5}
            axes.plot(values, [position] * len(values), "o", gid=name, **dots)
    style.name_rows(axes, [method.label for method, _ in shares])
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    drawn = [method for method, _ in shares]
    return Picture(name="convergence", title=title, figure=figure, caption=_CAPTION, methods=drawn, legend=False)
