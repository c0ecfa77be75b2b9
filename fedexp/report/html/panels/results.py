"""The tables over methods, as in the Markdown report."""

from collections.abc import Sequence

from fedexp.report import page as paper
from fedexp.report.html.section import Section
from fedexp.report.html.table import table
from fedexp.report.tables import Table

_TITLES = {"results": "Results", "simulated": "Results by simulated time"}


def sections(made: Sequence[Table]) -> list[Section]:
    """A part for each table."""
    return [
        Section(f"table-{one.name}", _TITLES[one.name], table(one.grid(), _TITLES[one.name]), paper.READING[one.name])
        for one in made
    ]
