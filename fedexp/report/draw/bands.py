"""The course of a quantity for each method: the mean line over its seeds, in the band from the least to the greatest.

Where some runs have ended (unfinished, stopped early) the line is thin and pale. A curve of many points is thinned out
evenly, so that the page of a large sweep stays small: the fewer methods, the more points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report.draw import curve_data, end_labels, style
from fedexp.report.draw.band import Band, Curve, average_curves, thin_out
from fedexp.report.draw.section import Picture
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = (
    "The line is the mean over the seeds and the band reaches from the least to the greatest of them; the line is "
    "thin and pale where not all of the seeds got so far."
)
_COUNTED = ("Round", "Rank of the client")  # there is nothing between two of them
_INCOMPLETE = {"linewidth": 0.8, "alpha": 0.6}
_MOST, _TOGETHER = 400, 12_000  # points of a line, and of all lines of a drawing
_LOGARITHMIC = 200.0  # times the least value: from there on a quantity that is free to is drawn by its logarithm


@dataclass(frozen=True, kw_only=True)
class PlotSpec:
    """What a picture is called and measures; `zero`: upwards from zero; `log`: by its logarithm if it spans far."""

    name: str
    title: str
    vertical: str
    horizontal: str = "Round"
    zero: bool = False
    log: bool = False
    tab: str = ""


def picture(spec: PlotSpec, methods: Sequence[Method], curve: Callable[[Run], Curve]) -> Picture | None:
    """A band for each method that has such a curve; None where none has one."""
    figure, axes = style.canvas(spec.title, spec.horizontal, spec.vertical)
    drawn_bands = draw(axes, methods, curve)
    if not drawn_bands:
        return None
    low = min(float(method_band.low.min()) for _, method_band in drawn_bands)
    if spec.horizontal in _COUNTED:
        style.integer_ticks(axes.xaxis)
    if spec.log and max(float(method_band.high.max()) for _, method_band in drawn_bands) > _LOGARITHMIC * low > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    elif spec.zero and low >= 0:
        axes.set_ylim(bottom=0)
    end_labels.draw(axes, drawn_bands)
    data = curve_data.describe(drawn_bands, spec.horizontal, spec.vertical or spec.title)
    drawn = [method for method, _ in drawn_bands]
    return Picture(name=spec.name, title=spec.title, figure=figure, methods=drawn, tab=spec.tab, data=data)


def draw(axes: "Axes", methods: Sequence[Method], curve: Callable[[Run], Curve]) -> list[tuple[Method, Band]]:
    """Draws the bands of the methods that have one, and returns them; of very many methods the lines alone."""
    bands = ((method, average_curves([curve(run) for run in method.runs])) for method in methods)
    drawn_bands = [(method, method_band) for method, method_band in bands if method_band is not None]
    crowd, most = len(drawn_bands) > style.CROWD, max(8, min(_MOST, _TOGETHER // max(1, len(drawn_bands))))
    for method, method_band in drawn_bands:
        thin = thin_out(method_band, most)
        if not crowd and (thin.high > thin.low).any():
            name = style.gid(method)
            axes.fill_between(thin.x, thin.low, thin.high, color=style.color(method), alpha=0.15, linewidth=0, gid=name)
        _draw_line(axes, thin, method, crowd)
    return drawn_bands


def _draw_line(axes: "Axes", method_band: Band, method: Method, crowd: bool) -> None:
    """The mean, thin and pale where not all runs are there; a point where there is but one position."""
    line_style = style.line_style(method, crowd)
    axes.plot(method_band.x, np.where(method_band.complete, method_band.mean, np.nan), **line_style)
    if len(method_band.x) == 1:
        axes.plot(method_band.x, method_band.mean, "o", color=line_style["color"], gid=line_style["gid"])
    # a point more, so that it joins the solid line
    partly = np.convolve(~method_band.complete, [1, 1, 1])[1:-1] > 0
    if partly.any():
        axes.plot(method_band.x, np.where(partly, method_band.mean, np.nan), **{**line_style, **_INCOMPLETE})
