"""A forest plot of published numbers as SVG: a line a number, with the range in which it would lie if ours were right.

The range (95 %) is drawn equally wide for all numbers, so that accuracies, losses and rounds share an axis; rounds are
compared by their logarithms. Right of it stand the published number and our mean with its interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from fedexp.replay import page
from fedexp.replay.page import JudgedCell

COLORS = {"agrees": "#009E73", "disputed": "#0072B2", "differs, explained": "#E69F00", "differs": "#D55E00"}
WIDTH, LABEL, PLOT, ROW, TOP = 1020, 430, 260, 17, 46
REACH = 3.0  # half ranges that the axis shows on either side


@dataclass(frozen=True)
class Line:
    """A published number: what it is of, its place on the axis (-1 to 1 is the range), its verdict, and both values.

    `spread` is how far the published runs scatter, `ours` the interval of our mean, both on the axis.
    """

    label: str
    place: float
    outcome: str
    values: str
    spread: float = 0.0
    ours: tuple[float, float] | None = None


def line_of(label: str, judged: JudgedCell) -> Line | None:
    """The line of a judged cell; None where there is no range."""
    published, expected = judged.cell.published, judged.verdict.expected
    if published is None or expected is None or judged.verdict.outcome not in page.DECIDED:
        return None
    scale = math.log if judged.cell.measure.is_count else float
    low, high = (scale(number) for number in expected)

    def place(number: float) -> float:
        return (2 * scale(number) - low - high) / max(high - low, 1e-12) if scale(number) != low else -float(high > low)

    explained = ", explained" if judged.cell.explained and judged.verdict.outcome == "differs" else ""
    stated = page.format_published(published).partition(" [")[0]  # without its place in the source
    values = f"{stated}; ours {page.format_ours(judged, in_short=True)}"
    name, outcome = f"{label}: {judged.cell.published_number}", judged.verdict.outcome + explained
    spread = 0.0 if published.spread is None else place(published.value + published.spread) - place(published.value)
    least, most = judged.verdict.low, judged.verdict.high
    has_interval = least is not None and most is not None and (least > 0 or scale is float)
    ours = (place(least), place(most)) if has_interval and least is not None and most is not None else None
    return Line(name, place(published.value), outcome, values, spread, ours)


def svg(lines: Sequence[Line]) -> str:
    """The picture."""
    height, centre, half = TOP + ROW * len(lines) + 30, LABEL + PLOT / 2, PLOT / 2 / REACH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<rect x="{centre - half:.1f}" y="{TOP - 8}" width="{2 * half:.1f}" height="{ROW * len(lines) + 8}" '
        'fill="#e8e8e8"/>',
    ]
    for number, (outcome, color) in enumerate(COLORS.items()):
        x = 10 + 130 * number
        parts += [f'<circle cx="{x}" cy="14" r="4" fill="{color}"/>', _text(x + 8, 17, outcome)]
    parts += [
        '<path d="M540 14 H564" stroke="#222222" stroke-width="1.5"/>',
        _text(568, 17, "our mean, 95 %"),
        _text(centre, TOP - 14, "where a right number lies (95 %)", "middle"),
    ]
    for number, line in enumerate(lines):
        y = TOP + ROW * number + ROW / 2
        color, x = COLORS.get(line.outcome, "#888888"), centre + half * max(-REACH, min(REACH, line.place))
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>'
        if abs(line.place) > REACH:
            tip = math.copysign(6, line.place)
            mark = f'<path d="M{x:.1f} {y - 4:.1f} l{tip:.0f} 4 l{-tip:.0f} 4 z" fill="{color}"/>'
        for ends, colour in ((line.ours, "#222222"), ((line.place - line.spread, line.place + line.spread), color)):
            if ends is not None and ends[1] > ends[0]:
                left, right = (centre + half * max(-REACH, min(REACH, end)) for end in ends)
                parts.append(
                    f'<path d="M{left:.1f} {y:.1f} H{right:.1f}" stroke="{colour}" stroke-width="1.5" fill="none"/>'
                )
        parts += [_text(LABEL - 14, y + 3, line.label, "end"), mark, _text(LABEL + PLOT + 12, y + 3, line.values)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222222">{escape(words)}</text>'
