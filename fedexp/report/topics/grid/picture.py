"""A panel of a grid as a heat map."""

import numpy as np

from fedexp.report.draw import heatmap, style
from fedexp.report.draw.picture_data import of_table
from fedexp.report.draw.section import Picture
from fedexp.report.topics.grid.panel import Panel


def panel_picture(name: str, panel: Panel, by: tuple[str, str], scale: tuple[float, float]) -> Picture:
    """A heat map with numbers in the cells, grey with a dash where there is none; the last column is the worst case.

    The colours reach over the `scale`, from its first number to its second.
    """
    values = np.column_stack([panel.values, panel.worst])
    height, width = values.shape
    size = (2.2 + 0.9 * width, 1.6 + 0.46 * height)
    title, factor = f"Final test {panel.measure}", 100.0 if panel.is_in_percent else 1.0
    figure, axes = style.canvas(title, by[1], by[0], size)
    heatmap.draw_cells(figure, axes, factor * values, f"Test {panel.measure}", *(factor * end for end in scale))
    heatmap.draw_numbers(axes, values, panel.number, lower=-0.12)
    heatmap.draw_texts(axes, _spreads(panel), lower=0.24, size=6.5)
    style.name_rows(axes, panel.rows)
    axes.axvline(width - 1.5, color=style.PAPER, linewidth=4)
    style.name_columns(axes, [*panel.columns, "worst"])
    data = of_table(panel.grid(" / ".join(by)))
    return Picture(name=name, title=title, figure=figure, data=data, caption=panel.title)


def _spreads(panel: Panel) -> list[list[str]]:
    """What stands below the number of each cell."""
    return [
        [
            f"{'' if np.isnan(std) else f'± {panel.number(std)}'} {panel.count_text(row, column)}".strip()
            for column, std in enumerate(stds)
        ]
        for row, stds in enumerate(panel.spreads)
    ]
