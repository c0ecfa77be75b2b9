"""The tables over methods, as in the Markdown report."""

from collections.abc import Sequence

from fedexp.report import page as paper
from fedexp.report.html.section import Section
from fedexp.report.html.table import table
from fedexp.report.tables import Table


def sections(made: Sequence[Table]) -> list[Section]:
    """A part for each table."""
    return [
        Section(
            f"table-{one.name}", one.title, table(one.grid(), f"{one.title}, a row a method"), paper.READING[one.name]
        )
        for one in made
    ]
