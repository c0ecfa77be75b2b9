"""How often the clients were selected: a kernel density estimate (Gaussian, Scott's bandwidth) for each method."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report import look
from fedexp.report.methods import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 400


def density(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Positions from 0 up, and the density there; None where all counts are the same, so that there is no density."""
    from scipy.stats import gaussian_kde

    if len(counts) < 2 or counts.min() == counts.max():
        return None
    estimate = gaussian_kde(counts)
    margin = 3 * float(np.sqrt(estimate.covariance[0, 0]))
    x = np.linspace(max(0.0, counts.min() - margin), counts.max() + margin, _POINTS)
    return x, estimate(x)


def figure(methods: Sequence[Method]) -> "Figure | None":
    """One curve a method, its seeds pooled; a vertical line where every client was selected equally often."""
    pooled = [(method, np.concatenate([run.selections for run in method.runs])) for method in methods]
    pooled = [(method, counts) for method, counts in pooled if counts.any()]
    if not pooled:
        return None
    drawn = [method for method, _ in pooled]
    picture = look.figure(7, 4, drawn)
    axes = picture.subplots()
    for method, counts in pooled:
        curve = density(counts)
        if curve is None:
            axes.axvline(counts[0], **look.line(method))
        else:
            axes.plot(*curve, **look.line(method))
            axes.fill_between(*curve, color=look.color(method), alpha=0.25 / len(drawn), linewidth=0)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    look.whole(axes.xaxis)
    look.finish(axes, "Selections of a client", "Rounds in which a client took part", "Density over clients")
    look.legend(picture, drawn)
    return picture
