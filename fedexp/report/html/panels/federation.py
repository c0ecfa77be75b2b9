"""Who holds how many examples of which class: a map for each different division of the data."""

from collections.abc import Sequence

from fedexp.report.federation import grouped_shares
from fedexp.report.html.heat import Heat, draw
from fedexp.report.html.section import Section, tabs
from fedexp.report.methods import Method
from fedexp.report.pictures import SplitTable, divisions

_SINGLY, _NUMBERED, _MOST = 100, 25, 8


def section(methods: Sequence[Method]) -> Section | None:
    """The first divisions under tabs."""
    found = divisions(methods)
    shown = found[:_MOST]
    panes = [(f"Federation {number}", _map(one)) for number, one in enumerate(shown, start=1)]
    more = f" The first {_MOST} of {len(found)} federations." if len(found) > _MOST else ""
    note = f"Examples of each class that the clients hold.{more}"
    return Section("federation", "Federations", tabs(panes), note) if panes else None


def _map(one: SplitTable) -> str:
    singly = len(one.counts) <= _SINGLY
    cells = one.counts.T.astype(float) if singly else grouped_shares(one.counts)
    classes, columns = cells.shape
    title = f"{len(one.counts):,} clients, {int(one.counts.sum()):,} examples: {one.told}"
    numbered = singly and columns <= _NUMBERED and classes <= _NUMBERED
    return draw(
        Heat(
            title=title,
            horizontal="Client" if singly else f"Clients ordered by their main class, in {columns} equal groups",
            vertical="Class",
            rows=list(one.classes),
            columns=[str(column) for column in range(columns)],
            values=cells,
            told="examples" if singly else "mean share of a client's examples",
            written=[[f"{int(count)}" if count else "" for count in row] for row in cells] if numbered else None,
        )
    )
