"""A section of a report as HTML: drawings beside each other, or under tabs; legends and tables."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from fedexp.report.draw import style
from fedexp.report.draw.section import Picture, Section
from fedexp.report.html.drawing import svg
from fedexp.report.html.table import table
from fedexp.report.read.methods import Method

_WIDE = 6  # inches, from which on a drawing has a row of its own


def section_html(section: Section) -> str:
    """The section with its heading."""
    note = f'<p class="note">{with_code(section.note)}</p>' if section.note else ""
    panes = [(tab, list(pictures)) for tab, pictures in groupby(section.pictures, lambda picture: picture.tab)]
    drawn = _tabs(panes) if len(panes) > 1 else "".join(_figure_row(pictures) for _, pictures in panes)
    tables = "".join(_heading(section, caption) + table(grid, caption) for caption, grid in section.tables)
    return f'<section id="{section.name}"><h2>{escape(section.title)}</h2>{note}{drawn}{tables}</section>\n'


def with_code(text: str) -> str:
    """A text of a page; what stands in backticks is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def legend_key(method: Method) -> str:
    """One button of a legend, which hides and shows the method in every drawing."""
    kind = f"c{method.position % len(style.COLORS)} d{style.dash(method)}"
    return (
        f'<button type="button" aria-pressed="true" data-m="{method.position}"><svg class="sample" viewBox="0 0 26 8" '
        f'aria-hidden="true"><path class="{kind}" d="M1 4H25"/></svg><span>'
        f"{escape(style.label_with_seeds(method))}</span></button>"
    )


def _heading(section: Section, caption: str) -> str:
    return f"<h3>{escape(caption)}</h3>" if caption != section.title else ""


def _tabs(panes: Sequence[tuple[str, Sequence[Picture]]]) -> str:
    """Panes of which one is shown; all of them, one below the other, in print and where no script runs."""
    shown = (
        f'<div class="pane" data-name="{escape(name)}"><h3>{escape(name)}</h3>{_figure_row(pictures)}</div>'
        for name, pictures in panes
    )
    return f'<div class="tabs">{"".join(shown)}</div>'


def _figure_row(pictures: Sequence[Picture]) -> str:
    return f'<div class="beside">{"".join(map(_figure, pictures))}</div>'


def _figure(picture: Picture) -> str:
    wide = ' class="wide"' if picture.figure.get_figwidth() > _WIDE else ""
    named = picture.legend and 1 < len(picture.methods) <= style.CROWD
    legend = f'<div class="legend">{"".join(map(legend_key, picture.methods))}</div>' if named else ""
    caption = f"<figcaption>{with_code(picture.caption)}</figcaption>" if picture.caption else ""
    return f'<figure{wide}><div class="canvas">{svg(picture)}</div>{legend}{caption}{_numbers(picture)}</figure>\n'


def _numbers(picture: Picture) -> str:
    """The numbers behind a picture, folded away."""
    data, caption = picture.data, f"Numbers: {picture.title}"
    note = f"<p>{escape(data.note)}</p>" if data.note else ""
    return f"<details><summary>Numbers</summary>{table(data.table, caption, copies=False)}{note}</details>"
