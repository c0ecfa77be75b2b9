"""A name and a value at the end of each curve, so that curves are not told apart by colour alone.

The value is the last one that all seeds have.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report.draw import style
from fedexp.report.draw.band import Band
from fedexp.report.read.methods import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 8  # points
_LETTER, _MARGIN = 0.062, 0.32  # inches of a letter, and of what is beside the labels
_APART = 0.145  # inches between two labels
_BEGIN, _BEND = 1.035, 0.012  # of the width of the axes: where labels begin, and what is left free before them


def draw(axes: "Axes", drawn_bands: Sequence[tuple[Method, Band]]) -> None:
    """Writes beside the axes, which become narrower; nothing for a crowd of curves."""
    if not 0 < len(drawn_bands) <= style.CROWD:
        return
    names = [
        f"{style.short_name(method)} {_value_text(float(drawn.mean[drawn.end]))}".strip()
        for method, drawn in drawn_bands
    ]
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    if figure.get_layout_engine() is None:
        figure.subplots_adjust(right=1 - (_MARGIN + _LETTER * max(map(len, names))) / width)
    axes.autoscale_view()  # works the limits out, which transData needs
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = np.array([to_axes.transform((drawn.x[drawn.end], drawn.mean[drawn.end])) for _, drawn in drawn_bands])
    box = axes.get_position()
    distance = _APART / (height * box.height)
    lowest, highest = (-box.y0 / box.height + distance / 2, (1 - box.y0) / box.height - distance / 2)
    label_heights = spread(ends[:, 1], distance, lowest, highest)
    for (method, _), name, (x, y), label_y in zip(drawn_bands, names, ends, label_heights, strict=True):
        line = {"transform": axes.transAxes, "color": style.QUIET, "linewidth": 0.6, "gid": style.gid(method)}
        axes.plot([x, _BEGIN - _BEND], [y, label_y], clip_on=False, scalex=False, scaley=False, **line)
        axes.text(_BEGIN, label_y, name, transform=axes.transAxes, fontsize=_SIZE, va="center", gid=style.gid(method))


def spread(heights: np.ndarray, distance: float, lowest: float = -np.inf, highest: float = np.inf) -> np.ndarray:
    """Heights `[n]` as near to the given ones as they can be with this distance between each two, in the same order.

    Neighbours that are too close are set around their common mean (pool adjacent violators); what would then be outside
    of the bounds moves to them, and those beside it with it.
    """
    order = np.argsort(heights, kind="stable")
    blocks: list[list[float]] = []  # sum of (height - rank * distance), and how many
    for height in heights[order] - distance * np.arange(len(heights)):
        blocks.append([float(height), 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    level = np.concatenate([np.full(int(count), total / count) for total, count in blocks])
    apart = np.empty(len(heights))
    level = np.clip(level, lowest, highest - distance * (len(heights) - 1))
    apart[order] = level + distance * np.arange(len(heights))
    return apart


def _value_text(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 and not value.is_integer() else f"{value:.4g}"
