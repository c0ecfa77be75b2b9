"""The picture of a panel: a cell's colour is its accuracy, the last column the worst case of a row."""

from pathlib import Path

import numpy as np

from fedexp.core.files import replacing
from fedexp.report.grid import Panel


def draw(path: Path, panel: Panel, by: tuple[str, str]) -> None:
    """Rows by columns with the numbers in the cells; grey hatches where there is none."""
    from matplotlib.figure import Figure

    values = np.column_stack([panel.accuracy, panel.worst])
    height, width = values.shape
    figure = Figure(figsize=(2.2 + 0.75 * width, 1.6 + 0.38 * height), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("#dddddd")
    image = axes.imshow(values, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        shade = "white" if value < 0.5 else "black"
        axes.text(column, row, "-" if np.isnan(value) else f"{value:.2f}", ha="center", va="center", color=shade)
    axes.axvline(width - 1.5, color="white", linewidth=4)
    axes.set_xticks(range(width), labels=[*panel.columns, "worst"], rotation=35, ha="right", parse_math=False)
    axes.set_yticks(range(height), labels=panel.rows, parse_math=False)
    axes.set_xlabel(by[1])
    axes.set_ylabel(by[0])
    axes.set_title(f"Final test accuracy{f': {panel.title}' if panel.title else ''}", fontsize=11, parse_math=False)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="Test accuracy")
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=130)
