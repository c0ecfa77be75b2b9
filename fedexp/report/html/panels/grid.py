"""Final accuracies laid out by two settings, as heat maps with the worst case of each row."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.grid import Panel
from fedexp.report.html.heat import Heat, draw
from fedexp.report.html.section import Section
from fedexp.report.html.table import table


def sections(panels: Sequence[Panel], by: tuple[str, str]) -> list[Section]:
    """A part for each panel: the map and the table."""
    return [_section(number, panel, by) for number, panel in enumerate(panels, start=1)]


def _section(number: int, panel: Panel, by: tuple[str, str]) -> Section:
    title = panel.title or "Final test accuracy"
    cells = np.column_stack([panel.accuracy, panel.worst])
    heat = Heat(
        title=f"Final test accuracy, {by[0]} by {by[1]}",
        horizontal=by[1],
        vertical=by[0],
        rows=panel.rows,
        columns=[*panel.columns, "worst"],
        values=cells,
        told="accuracy",
        greatest=1.0,
        written=[["-" if np.isnan(value) else f"{value:.2f}" for value in row] for row in cells],
    )
    return Section(f"grid-{number}", title, draw(heat) + table(panel.grid("\\".join(by)), title))
