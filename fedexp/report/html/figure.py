"""The frame around a drawing: its caption, its name for who cannot see it, its legend, and the numbers to hover."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.report.html.look import stroke
from fedexp.report.html.svg import text
from fedexp.report.methods import Method


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing in its view box; with `data` (JSON) it can be hovered, touched, and walked along by the arrow keys."""

    caption: str
    spoken: str
    width: float
    height: float
    body: str
    kind: str
    data: str = ""
    methods: Sequence[Method] = ()
    below: str = ""

    def html(self) -> str:
        """The figure with everything around it."""
        focus = ' tabindex="0"' if self.data else ""
        drawing = (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{text(self.spoken)}"{focus}>'
            f"<title>{text(self.spoken)}</title>{self.body}</svg>"
        )
        numbers = f'<script type="application/json">{embedded(self.data)}</script>' if self.data else ""
        tip = '<div class="tip" role="status" hidden></div>' if self.data else ""
        names = legend(self.methods) if len(self.methods) > 1 else ""
        return (
            f'<figure class="{self.kind}"><figcaption>{text(self.caption)}</figcaption>'
            f'<div class="canvas">{drawing}{tip}</div>{names}{self.below}{numbers}</figure>\n'
        )


def legend(methods: Sequence[Method]) -> str:
    """A button a method, which hides and shows it in every drawing."""
    return f'<div class="legend">{"".join(key(method) for method in methods)}</div>'


def key(method: Method) -> str:
    """One button of a legend."""
    count = len(method.runs)
    seeds = f" ({count} seeds)" if count > 1 else ""
    sample = '<svg class="sample" viewBox="0 0 26 8" aria-hidden="true"><path class="line {}" d="M1 4H25"/></svg>'
    return (
        f'<button type="button" aria-pressed="true" data-m="{method.position}">'
        f"{sample.format(stroke(method.position))}<span>{text(method.label + seeds)}</span></button>"
    )


def embedded(data: str) -> str:
    """JSON that no word of a folder can end: the page's own signs are written as JSON escapes."""
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
