"""The Markdown page of a grid: a heat map and a table for each panel."""

from collections.abc import Sequence
from pathlib import Path

from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.pages import markdown_page, sections
from fedexp.report.read.runs import Run
from fedexp.report.topics import grid


@style.style()
def write(path: Path, runs: Sequence[Run], by: tuple[str, str]) -> list[tuple[str, Grid]]:
    """Writes the page, its tables and pictures, the page last; returns the titled tables."""
    shown = sections.grid_sections(grid.panels(runs, by), by)
    markdown_page.compose(path, f"# {by[0]} by {by[1]}\n\n{grid.explain(runs)}\n", grid.caveats(runs), shown, {})
    return [table for section in shown for table in section.tables]
