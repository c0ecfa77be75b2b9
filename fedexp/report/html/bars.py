"""Bars from zero, a row a name, each of one or several parts in the colours of a legend."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.report.html import svg
from fedexp.report.html.figure import Figure

WIDTH = 640
_ROW, _TOP, _BOTTOM, _LETTER = 26, 6, 44, 7.2


@dataclass(frozen=True)
class Bar:
    """Its name, the lengths of its parts, and the words after it."""

    name: str
    parts: Sequence[float]
    told: str


def draw(title: str, horizontal: str, bars: Sequence[Bar], parts: Sequence[str], greatest: float | None = None) -> str:
    """The figure; every part says its number where a pointer rests on it."""
    left = 12 + min(240.0, _LETTER * max(len(bar.name) for bar in bars))
    end = WIDTH - 16 - _LETTER * max(len(bar.told) for bar in bars)
    longest = greatest or max(sum(bar.parts) for bar in bars) or 1.0
    across = svg.Scale(0.0, longest, left, end)
    floor = _TOP + _ROW * len(bars)
    drawn = [_grid(across, floor)]
    for row, bar in enumerate(bars):
        drawn.append(_row(bar, _TOP + _ROW * row, across, parts))
    drawn.append(svg.label((left + end) / 2, floor + _BOTTOM - 8, horizontal, "name middle"))
    spoken = f"{title}: " + "; ".join(f"{bar.name} {bar.told}" for bar in bars[:40])
    return Figure(
        caption=title,
        spoken=spoken,
        width=WIDTH,
        height=floor + _BOTTOM,
        body="".join(drawn),
        kind="bars",
        below=swatches(parts) if len(parts) > 1 else "",
    ).html()


def swatches(names: Sequence[str], colors: Sequence[int] | None = None) -> str:
    """A legend of surfaces, coloured by their numbers."""
    numbers = range(len(names)) if colors is None else colors
    shown = (f'<span><i class="c{n % 7}"></i>{svg.text(name)}</span>' for n, name in zip(numbers, names, strict=True))
    return f'<div class="swatches">{"".join(shown)}</div>'


def _row(bar: Bar, top: float, across: svg.Scale, parts: Sequence[str]) -> str:
    shown = bar.name if len(bar.name) <= 34 else f"{bar.name[:33]}…"
    drawn, begin = [svg.label(across.start - 6, top + 17, shown, "tick end")], 0.0
    for number, (length, name) in enumerate(zip(bar.parts, parts, strict=True)):
        left, right = (float(across(place)) for place in (begin, begin + length))
        told = svg.text(f"{bar.name}, {name}: {svg.short(length)}")
        box = f'x="{svg.one(left)}" y="{top + 4}" width="{max(0.0, right - left):.2f}" height="{_ROW - 8}"'
        drawn.append(f'<rect class="bar c{number % 7}" {box}><title>{told}</title></rect>')
        begin += length
    drawn.append(svg.label(float(across(begin)) + 6, top + 17, bar.told, "tick"))
    return "".join(drawn)


def _grid(across: svg.Scale, floor: float) -> str:
    ticks = svg.ticks(0.0, across.high, 5)
    return "".join(
        f'<path class="grid" d="M{svg.one(float(across(tick)))} {_TOP}V{svg.one(floor)}"/>'
        + svg.label(float(across(tick)), floor + 16, svg.short(tick), "tick middle")
        for tick in ticks
    )
