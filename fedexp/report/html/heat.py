"""Heat maps: the strength of one colour for a number, or a colour for each kind, one path for all alike cells.

Cells of one row that touch and look alike are drawn as one, so that a map of many rounds stays small.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from fedexp.report.html import svg
from fedexp.report.html.figure import Figure

WIDTH = 640
_LEVELS = 24
_LETTER = 7.2  # width of a letter of a row's name
_RIGHT, _TOP, _BOTTOM = 10, 8, 44


@dataclass(frozen=True, eq=False, kw_only=True)
class Heat:
    """`values [R, C]`, NaN where there is none; `kinds [R, C]` (0 none) colours by kind instead of by value.

    `columns` names or numbers the columns, `written` are texts in the cells, `told` what hovering says before a value.
    """

    title: str
    horizontal: str
    vertical: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    told: str
    greatest: float | None = None
    least: float = 0.0
    kinds: np.ndarray | None = None
    written: Sequence[Sequence[str]] | None = None
    below: str = ""


@dataclass(frozen=True)
class Cells:
    """Where the cells are."""

    left: float
    wide: float
    tall: float
    height: float

    def box(self, row: int, column: int, many: int = 1) -> tuple[float, float, float, float]:
        return self.left + column * self.wide, _TOP + row * self.tall, many * self.wide, self.tall

    def middle(self, row: int, column: int) -> tuple[float, float]:
        return self.left + (column + 0.5) * self.wide, _TOP + (row + 0.5) * self.tall


def layout(heat: Heat) -> Cells:
    """Room for the names of the rows; cells of up to 26 units, less where there are many."""
    rows, columns = heat.values.shape
    left = 26 + min(240.0, _LETTER * max(map(len, heat.rows)) + 10)
    tall = max(2.0, min(26.0, 520 / rows))
    turned = 0.0 if not _slanted(heat) else min(90.0, 0.62 * _LETTER * max(map(len, heat.columns)))
    return Cells(left, (WIDTH - left - _RIGHT) / columns, tall, _TOP + rows * tall + _BOTTOM + turned)


def draw(heat: Heat, over: str = "") -> str:
    """The figure of a heat map, with something drawn over its cells."""
    place = layout(heat)
    body = _cells(heat, place) + over + _written(heat, place) + _names(heat, place)
    rows, columns = heat.values.shape
    box = [round(x, 2) for x in (place.left, _TOP, place.wide, place.tall)]
    numbers = [[None if np.isnan(value) else float(f"{value:.4g}") for value in row] for row in heat.values.tolist()]
    data = {"box": box, "rows": list(heat.rows), "columns": list(heat.columns), "values": numbers, "told": heat.told}
    return Figure(
        caption=heat.title,
        spoken=f"{heat.title}: {rows} rows ({heat.vertical.lower()}) by {columns} columns ({heat.horizontal.lower()})",
        width=WIDTH,
        height=place.height,
        body=body + '<path class="cell"/>',
        kind="heat",
        data=json.dumps(data | {"across": heat.horizontal, "up": heat.vertical}, separators=(",", ":")),
        below=heat.below or _key(heat),
    ).html()


def _key(heat: Heat) -> str:
    """What the weakest and the strongest colour mean."""
    least, greatest = (svg.short(value) for value in _range(heat))
    return f'<div class="scale">{least}<i></i>{greatest} {svg.text(heat.told)}</div>'


def _range(heat: Heat) -> tuple[float, float]:
    return heat.least, float(np.nanmax(heat.values, initial=heat.least)) if heat.greatest is None else heat.greatest


def strength(heat: Heat) -> np.ndarray:
    """How strong a cell's colour is, 0 to `_LEVELS`; -1 where there is no value."""
    least, greatest = _range(heat)
    share = (heat.values - least) / ((greatest - least) or 1.0)
    return np.where(np.isnan(share), -1, np.rint(np.clip(np.nan_to_num(share), 0, 1) * _LEVELS)).astype(np.int64)


def _cells(heat: Heat, place: Cells) -> str:
    """The ground of all cells, and a path for the cells of each strength or kind."""
    marks = strength(heat) if heat.kinds is None else heat.kinds
    ground = svg.boxes([place.box(row, 0, marks.shape[1]) for row in range(len(marks))])
    alike: dict[int, list[tuple[float, float, float, float]]] = {}
    for row, line in enumerate(marks.tolist()):
        column = 0
        for mark, same in groupby(line):
            many = len(list(same))
            if mark != 0:
                alike.setdefault(mark, []).append(place.box(row, column, many))
            column += many
    drawn = (f'<path {_paint(mark, heat.kinds is None)} d="{svg.boxes(alike[mark])}"/>' for mark in sorted(alike))
    return f'<path class="ground" d="{ground}"/>' + "".join(drawn)


def _paint(mark: int, by_strength: bool) -> str:
    if by_strength:
        return 'class="absent"' if mark < 0 else f'class="heated" fill-opacity="{mark / _LEVELS:.2g}"'
    return f'class="kind c{(abs(mark) - 1) % 7}{" waits" if mark < 0 else ""}"'


def _written(heat: Heat, place: Cells) -> str:
    if heat.written is None:
        return ""
    marks, parts = strength(heat), []
    for row, line in enumerate(heat.written):
        for column, content in enumerate(line):
            x, y = place.middle(row, column)
            kind = "on middle" if marks[row, column] > _LEVELS / 2 else "off middle"
            parts.append(svg.label(x, y + 3.5, content, kind))
    return "".join(parts)


def _slanted(heat: Heat) -> bool:
    """Whether the names of the columns are words too long to stand beside each other."""
    longest = max(map(len, heat.columns))
    return longest > 4 and longest * _LETTER * len(heat.columns) > WIDTH - 120


def _names(heat: Heat, place: Cells) -> str:
    rows, columns = heat.values.shape
    floor, parts = _TOP + rows * place.tall, []
    for row in range(0, rows, max(1, int(np.ceil(11 / place.tall)))):
        name = heat.rows[row]
        shown = name if len(name) <= 34 else f"{name[:33]}…"
        parts.append(svg.label(place.left - 6, place.middle(row, 0)[1] + 4, shown, "tick end"))
    slanted = _slanted(heat)
    room = 13 if slanted else (max(map(len, heat.columns)) + 1.5) * _LETTER
    for column in range(0, columns, _step(room / place.wide)):
        x = place.middle(0, column)[0]
        turn = f' transform="rotate(-38 {svg.one(x)} {svg.one(floor + 14)})"' if slanted else ""
        parts.append(svg.label(x, floor + 15, heat.columns[column], "tick end" if slanted else "tick middle", turn))
    parts.append(svg.label((place.left + WIDTH) / 2, place.height - 8, heat.horizontal, "name middle"))
    middle = svg.one((_TOP + floor) / 2)
    turned = f' transform="rotate(-90 12 {middle})"'
    parts.append(svg.label(12, float(middle), heat.vertical, "name middle", turned))
    return "".join(parts)


def _step(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, ... that is not below `least`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10
