"""Tables as one LaTeX file for `input`, a tabular after the other (booktabs), each below its title as a comment."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from fedexp.report.draw.markdown import Grid
from fedexp.report.pages import sections
from fedexp.report.pages.write_page import write_page
from fedexp.report.read.methods import Method
from fedexp.report.topics import tables
from fedexp.report.topics.grid import notes
from fedexp.report.topics.grid.panel import panels
from fedexp.report.topics.tables import Table, View

_WIDTH = 110
TitledGrids = Sequence[tuple[str, Grid]]


def write(page: Path, methods: Sequence[Method], caveats: Sequence[str], view: View) -> list[Table]:
    """Writes the tables over methods, and returns them."""
    result_tables = tables.make_tables(methods, view)
    titled_grids = [titled for table in result_tables for titled in table.grids()]
    write_page(page, compose(titled_grids, [f"Mean ± {view.spread}.", *caveats]))
    return result_tables


def write_grid(
    page: Path, methods: Sequence[Method], by: tuple[str, str], caveats: Sequence[str], view: View
) -> list[tuple[str, Grid]]:
    """Writes the tables of final accuracies by two settings, and returns them with their titles."""
    runs = [run for method in methods for run in method.every_run]
    shown_panels = panels(runs, by, view)
    titled_grids = sections.titled_tables(shown_panels, by)
    write_page(page, compose(titled_grids, [notes.explain(runs, shown_panels[0]), *caveats]))
    return titled_grids


def compose(titled_grids: TitledGrids, remarks: Sequence[str] = ()) -> str:
    """The text of a file with these tables; the remarks stand below them as comments."""
    texts = [f"{_comment(title)}{table.latex()}" for title, table in titled_grids]
    return "\n".join([*texts, comments(remarks)] if remarks else texts)


def comments(remarks: Sequence[str]) -> str:
    """Lines of comments that hold these remarks."""
    return "".join(_comment(line) for remark in remarks for line in textwrap.wrap(remark, _WIDTH))


def _comment(text: str) -> str:
    """A line of a comment, whatever the text holds."""
    return f"% {' '.join(text.split())}\n"
