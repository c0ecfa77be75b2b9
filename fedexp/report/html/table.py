"""Tables as tables: sorted by a click on a heading, copied as Markdown or LaTeX by a button."""

import re
from html import escape

from fedexp.report.draw.markdown import Grid

_WIDE = 7  # columns
_COPIES = (("Markdown", Grid.markdown), ("LaTeX", Grid.latex))


def table(grid: Grid, caption: str, copies: bool = True) -> str:
    """Returns the HTML of a grid, with buttons that copy it; its first column heads the rows."""
    escaped_caption = escape(caption)
    head = "".join(
        f'<th scope="col"{_number_class(grid, column)} aria-sort="none">'
        f'<button type="button">{_with_breaks(name)}</button></th>'
        for column, name in enumerate(grid.headings)
    )
    closer = ' class="wide"' if len(grid.headings) > _WIDE else ""  # and in print smaller
    rows = "".join(f"<tr>{_cells(grid, number)}</tr>\n" for number in range(len(grid.rows)))
    buttons = _copy_buttons(grid) if copies else ""
    return (
        f'<div class="table">{buttons}<div class="scroll" tabindex="0" role="group" '
        f'aria-label="{escaped_caption}"><table{closer}><caption>{escaped_caption}</caption><thead><tr>{head}'
        "</tr></thead>\n"
        f"<tbody>{rows}</tbody></table></div></div>\n"
    )


def _with_breaks(name: str) -> str:
    """A text that a narrow page may break after its signs."""
    return "<wbr>".join(escape(part) for part in re.split(r"(?<=[/@_=])|(?<=\.)(?=\D)", name))


def _cells(grid: Grid, row: int) -> str:
    texts = [(_with_breaks if n < grid.texts else escape)(text) for n, text in enumerate(grid.rows[row])]
    shown = [f"<strong>{text}</strong>" if (row, column) in grid.bold else text for column, text in enumerate(texts)]
    return f'<th scope="row"><span>{shown[0]}</span></th>' + "".join(
        f"<td{_number_class(grid, column)}>{text}</td>" for column, text in enumerate(shown[1:], start=1)
    )


def _number_class(grid: Grid, column: int) -> str:
    return "" if column < grid.texts else ' class="number"'


def _copy_buttons(grid: Grid) -> str:
    buttons = "".join(
        f'<button type="button" class="copy">Copy {name}</button><textarea hidden readonly aria-label="{name}">'
        f"{escape(write(grid))}</textarea>"
        for name, write in _COPIES
    )
    return f'<div class="tools">{buttons}</div>'
