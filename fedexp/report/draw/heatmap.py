"""Heat maps: one colour, the stronger the greater the number, on any ground; grey where there is no number."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HUE, _STRONGEST, _ABSENT = "#3c83c2", "bf", "#88888850"  # on white dark letters, in the dark light ones can be read


def draw_cells(
    figure: "Figure",
    axes: "Axes",
    values: np.ndarray,
    label: str,
    least: float = 0.0,
    greatest: float | None = None,
) -> None:
    """Colours `values [R, C]` from `least` to `greatest` (their own), with a scale of this name beside them."""
    from matplotlib.colors import LinearSegmentedColormap

    ramp = LinearSegmentedColormap.from_list("heat", [f"{_HUE}00", f"{_HUE}{_STRONGEST}"])
    if greatest is None:
        greatest = float(np.nanmax(values, initial=least))
    top = greatest if greatest > least else least + 1.0
    colors = ramp.with_extremes(bad=_ABSENT)
    image = axes.imshow(values, cmap=colors, vmin=least, vmax=top, aspect="auto", interpolation="none")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label=label, pad=0.02)


def draw_numbers(axes: "Axes", values: np.ndarray, format_cell: Callable[[float], str], *, lower: float = 0.0) -> None:
    """Writes a text for each of the `values [rows, columns]` into its cell, so far below its middle."""
    draw_texts(axes, [[format_cell(value) for value in line] for line in values], lower=lower)


def draw_texts(axes: "Axes", texts: Sequence[Sequence[str]], *, lower: float = 0.0, size: float = 8) -> None:
    """Writes `texts [rows, columns]` into their cells, so far below their middles."""
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            axes.text(column, row + lower, text, ha="center", va="center", fontsize=size, in_layout=False)
