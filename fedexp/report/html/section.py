"""A part of the page, and parts beside each other under tabs."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.report.html.svg import text


@dataclass(frozen=True)
class Section:
    """Its name in links, its heading, its content, and what must be known to read it."""

    name: str
    title: str
    body: str
    note: str = ""

    def html(self) -> str:
        note = f'<p class="note">{text(self.note)}</p>' if self.note else ""
        return f'<section id="{self.name}"><h2>{text(self.title)}</h2>{note}{self.body}</section>\n'


def side_by_side(figures: Sequence[str]) -> str:
    """Two drawings in a row where there is room."""
    return f'<div class="beside">{"".join(figures)}</div>' if any(figures) else ""


def tabs(panes: Sequence[tuple[str, str]]) -> str:
    """Panes of which one is shown; all of them, one below the other, in print and where no script runs."""
    panes = [(name, content) for name, content in panes if content]
    if len(panes) < 2:
        return "".join(content for _, content in panes)
    shown = (f'<div class="pane" data-name="{text(name)}"><h3>{text(name)}</h3>{body}</div>' for name, body in panes)
    return f'<div class="tabs">{"".join(shown)}</div>'
