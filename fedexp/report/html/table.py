"""Tables as tables: sorted by a click on a heading, copied as Markdown or LaTeX by a button."""

import re
from collections.abc import Sequence
from html import escape

from fedexp.report.markup import Grid

_WIDE = 9  # columns
_COPIES = (("Markdown", Grid.markdown), ("LaTeX", Grid.latex))


def table(grid: Grid, caption: str) -> str:
    """The grid; its first column heads the rows."""
    told = escape(caption)
    head = "".join(
        f'<th scope="col"{_side(grid, column)} aria-sort="none"><button type="button">{_breakable(name)}</button></th>'
        for column, name in enumerate(grid.headings)
    )
    rows = "".join(f"<tr>{_cells(grid, row)}</tr>\n" for row in grid.rows)
    return (
        f'<div class="table">{_copies(grid)}<div class="scroll" tabindex="0" role="group" '
        f'aria-label="{told}"><table{_wide(grid)}><caption>{told}</caption><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div></div>\n"
    )


def _breakable(name: str) -> str:
    """A heading that a narrow page may break after its signs."""
    return "<wbr>".join(escape(part) for part in re.split(r"(?<=[/@_])|(?<=\.)(?=\D)", name))


def _cells(grid: Grid, row: Sequence[str]) -> str:
    first, *others = row
    return f'<th scope="row"><span>{escape(first)}</span></th>' + "".join(
        f"<td{_side(grid, column)}>{escape(cell)}</td>" for column, cell in enumerate(others, start=1)
    )


def _wide(grid: Grid) -> str:
    """Many columns are printed in small letters."""
    return ' class="wide"' if len(grid.headings) > _WIDE else ""


def _side(grid: Grid, column: int) -> str:
    return "" if column < grid.texts else ' class="number"'


def _copies(grid: Grid) -> str:
    buttons = "".join(
        f'<button type="button" class="copy">Copy {name}</button><textarea hidden readonly aria-label="{name}">'
        f"{escape(write(grid))}</textarea>"
        for name, write in _COPIES
    )
    return f'<div class="tools">{buttons}</div>'
