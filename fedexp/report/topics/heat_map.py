"""The picture of a panel: a cell's colour is its value, the last column the worst case of a row."""

import numpy as np

from fedexp.maths.curve_metrics import SHARES
from fedexp.report.draw import heatmap, style
from fedexp.report.draw.section import Picture
from fedexp.report.topics.grid import Panel


def picture(name: str, panel: Panel, by: tuple[str, str]) -> Picture:
    """Rows by columns with the numbers in the cells; grey, with a dash, where there is none."""
    values = np.column_stack([panel.values, panel.worst])
    height, width = values.shape
    size = (2.2 + 0.75 * width, 1.6 + 0.38 * height)
    title = f"Final test {panel.metric}"
    figure, axes = style.canvas(title, by[1], by[0], size)
    heatmap.draw_cells(figure, axes, values, f"Test {panel.metric}", greatest=1.0 if panel.metric in SHARES else None)
    heatmap.draw_numbers(axes, values, lambda value: "-" if np.isnan(value) else f"{value:.2f}")
    style.name_rows(axes, panel.rows)
    axes.axvline(width - 1.5, color=style.PAPER, linewidth=4)
    axes.set_xticks(range(width), labels=[*map(style.shorten, panel.columns), "worst"], rotation=35, ha="right")
    return Picture(name=name, title=title, figure=figure, caption=panel.title)
