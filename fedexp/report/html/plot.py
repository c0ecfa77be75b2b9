"""Lines over numbers: the mean of each method in the band over its seeds, with what hovering reads beside it.

A curve of many points is thinned out evenly, its first and last point kept, so that the page of a large sweep stays
small: the fewer methods, the more points. From 13 methods on there are no bands, and the lines are thin.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.report import bands
from fedexp.report.bands import Band, Curve
from fedexp.report.html import svg
from fedexp.report.html.figure import Figure
from fedexp.report.html.look import CROWD, stroke
from fedexp.report.methods import Method
from fedexp.report.runs import Run

WIDTH, HEIGHT = 480, 300
LEFT, TOP, RIGHT, BOTTOM = 64, 12, 14, 48
_MOST, _TOGETHER = 400, 12_000  # points of a line, and of all lines of a drawing
_LOGARITHMIC = 200.0  # times the least value: from there on a quantity that is free to is drawn by its logarithm
Found = tuple[Method, Band]


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What a drawing is called and measures; `zero`: upwards from zero; `log`: by its logarithm if it spans far."""

    title: str
    horizontal: str
    vertical: str
    whole: bool = True
    zero: bool = False
    log: bool = False


def draw(axes: Axes, methods: Sequence[Method], curve: Callable[[Run], Curve]) -> str:
    """The figure of the methods that have such a curve; nothing where none has one."""
    found = [(method, band) for method in methods if (band := bands.of(method, curve)) is not None]
    return drawn(axes, found)


def drawn(axes: Axes, found: Sequence[Found]) -> str:
    """The figure of these bands."""
    if not found:
        return ""
    most = max(8, min(_MOST, _TOGETHER // len(found)))
    found = [(method, thinned(band, most)) for method, band in found]
    across, up = scales(axes, found)
    crowd = len(found) > CROWD
    lines = [_line(method, band, across, up) for method, band in found]
    shades = [] if crowd else [_shade(method, band, across, up) for method, band in found if _spread(band)]
    body = frame(axes, across, up) + "".join(shades) + "".join(lines) + '<path class="cross"/>'
    names = ", ".join(method.label for method, _ in found[:CROWD]) + (", ..." if crowd else "")
    return Figure(
        caption=axes.title,
        spoken=f"{axes.title} by {axes.horizontal.lower()}: {names}",
        width=WIDTH,
        height=HEIGHT,
        body=body,
        kind="lines crowd" if crowd else "lines",
        data=values(axes, found, across, up),
        methods=[] if crowd else [method for method, _ in found],
    ).html()


def thinned(band: Band, most: int) -> Band:
    """At most so many points of a band, evenly chosen by their order, the first and the last among them."""
    if len(band.x) <= most:
        return band
    kept = np.unique(np.rint(np.linspace(0, len(band.x) - 1, most)).astype(np.int64))
    return Band(*(column[kept] for column in (band.x, band.mean, band.low, band.high, band.complete)))


def scales(axes: Axes, found: Sequence[Found]) -> tuple[svg.Scale, svg.Scale]:
    """From the least to the greatest place, and a little more than the range of values."""
    left, right = min(band.x[0] for _, band in found), max(band.x[-1] for _, band in found)
    low, high = min(band.low.min() for _, band in found), max(band.high.max() for _, band in found)
    low, high = float(low), float(high)
    log = axes.log and low > 0 and high > _LOGARITHMIC * low
    if log:
        low, high = low / 1.15, high * 1.15
    else:
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
        low, high = (0.0 if axes.zero and low >= 0 else low - margin), high + margin
    if right == left:
        left, right = left - 0.5, right + 0.5
    across = svg.Scale(float(left), float(right), LEFT, WIDTH - RIGHT)
    return across, svg.Scale(low, high, HEIGHT - BOTTOM, TOP, log)


def frame(axes: Axes, across: svg.Scale, up: svg.Scale) -> str:
    """Grid lines, numbers and the names of both axes."""
    parts, right, floor = [], WIDTH - RIGHT, HEIGHT - BOTTOM
    rows = svg.powers(up.low, up.high) if up.log else svg.ticks(up.low, up.high)
    columns = svg.ticks(across.low, across.high, 5, axes.whole)
    for tick, place in zip(rows, up(np.array(rows)).tolist(), strict=True):
        parts.append(f'<path class="grid" d="M{LEFT} {svg.one(place)}H{right}"/>')
        parts.append(svg.label(LEFT - 6, place + 4, svg.power(tick) if up.log else svg.short(tick), "tick end"))
    for tick, place in zip(columns, across(np.array(columns)).tolist(), strict=True):
        parts.append(f'<path class="grid" d="M{svg.one(place)} {TOP}V{floor}"/>')
        parts.append(svg.label(min(place, right - 4), floor + 17, svg.short(tick), "tick middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{right}"/>')
    parts.append(svg.label((LEFT + right) / 2, HEIGHT - 8, axes.horizontal, "name middle"))
    middle = svg.one((TOP + floor) / 2)
    turned = f' transform="rotate(-90 12 {middle})"'
    parts.append(svg.label(12, float(middle), axes.vertical, "name middle", turned))
    return "".join(parts)


def values(axes: Axes, found: Sequence[Found], across: svg.Scale, up: svg.Scale) -> str:
    """The numbers of the lines for hovering, those of a common axis once."""
    places: dict[bytes, tuple[int, list[float]]] = {}
    lines = []
    for method, band in found:
        place, _ = places.setdefault(band.x.tobytes(), (len(places), _few(band.x, 7)))
        line = {"m": method.position, "x": place, "y": _few(band.mean)}
        if len(found) <= CROWD and _spread(band):
            line |= {"l": _few(band.low), "h": _few(band.high)}
        lines.append(line)
    box = [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM]
    ranges = [across.low, across.high, up.low, up.high]
    content = {"box": box, "range": ranges, "log": up.log, "across": axes.horizontal, "up": axes.vertical}
    return json.dumps(content | {"x": [own for _, own in places.values()], "lines": lines}, separators=(",", ":"))


def _line(method: Method, band: Band, across: svg.Scale, up: svg.Scale) -> str:
    """The mean, dotted where not all runs are there; a point where there is but one position."""
    x, y, kind = across(band.x), up(band.mean), stroke(method.position)
    if len(x) == 1:
        return (
            f'<circle class="dot {kind}" data-m="{method.position}" cx="{svg.one(x[0])}" cy="{svg.one(y[0])}" r="4"/>'
        )
    ended = int(band.complete.sum()) if band.complete[0] else 0  # runs end, they do not come back
    whole, rest = svg.path(x[:ended], y[:ended]), svg.path(x[max(0, ended - 1) :], y[max(0, ended - 1) :])
    parts = [(whole, "")] if ended > 1 else []
    parts += [(rest, " partly")] if ended < len(x) else []
    return "".join(f'<path class="line {kind}{more}" data-m="{method.position}" d="{way}"/>' for way, more in parts)


def _shade(method: Method, band: Band, across: svg.Scale, up: svg.Scale) -> str:
    way = svg.area(across(band.x), up(band.low), up(band.high))
    return f'<path class="band {stroke(method.position)}" data-m="{method.position}" d="{way}"/>'


def _spread(band: Band) -> bool:
    return bool((band.high > band.low).any())


def _few(column: np.ndarray, digits: int = 4) -> list[float]:
    """Rounded to the digits that are shown, whole numbers without a point."""
    rounded = [float(f"{value:.{digits}g}") for value in column.tolist()]
    return [int(value) if value.is_integer() and abs(value) < 1e9 else value for value in rounded]
