"""The primitives of a drawing: places on a scale, round numbers for its ticks, paths of few characters, escaped text.

Coordinates are those of the view box. One decimal of them is enough to draw, and hovering does not read them back: the
values stand beside the drawing.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_STEPS = (1, 2, 5, 10)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto places from `start` to `end`, by their logarithms if `log`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: "np.ndarray | float") -> np.ndarray:
        """The place of each value."""
        low, high, own = (np.log10(x) if self.log else x for x in (self.low, self.high, np.asarray(values)))
        return np.asarray(self.start + (own - low) / (high - low) * (self.end - self.start))


def ticks(low: float, high: float, count: int = 6, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, about `count` of them and 1, 2 or 5 times a power of ten apart.

    Example:
        >>> ticks(0.13, 0.98)
        [0.2, 0.4, 0.6, 0.8]
    """
    raw = (high - low) / count
    if not math.isfinite(raw) or raw <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in _STEPS if factor * power >= raw * 0.999)
    step = max(1.0, step) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def powers(low: float, high: float) -> list[float]:
    """The powers of ten from `low` to `high`, at most eight of them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1, max(1, -(-(last - first + 1) // 8)))]


def power(value: float) -> str:
    """A power of ten as it is written by hand, those near one as numbers.

    Example:
        >>> power(1e6), power(0.1)
        ('10⁶', '0.1')
    """
    exponent = round(math.log10(value))
    return f"{value:g}" if -3 < exponent < 4 else "10" + str(exponent).translate(_RAISED)


def short(value: float, digits: int = 4) -> str:
    """A number of few digits, thousands set apart.

    Example:
        >>> short(0.86125), short(21066.4), short(1e-7)
        ('0.8612', '21,070', '1e-07')
    """
    if 1000 <= abs(value) < 1e7:
        return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):,.0f}"
    return f"{value:.{digits}g}"


def path(x: np.ndarray, y: np.ndarray) -> str:
    """A line through the points, each point relative to the last one drawn.

    Example:
        >>> path(np.array([0.0, 1.5]), np.array([2.0, 1.0]))
        'M0 2l1.5-1'
    """
    tenths = np.rint(np.column_stack([x, y]) * 10).astype(np.int64)
    if not len(tenths):
        return ""
    steps = np.diff(tenths, axis=0).tolist()
    return f"M{_pair(*tenths[0].tolist())}" + ("l" + " ".join(_pair(*step) for step in steps) if steps else "")


def area(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """The surface between two lines over the same places."""
    return path(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])) + "z"


def boxes(cells: Sequence[tuple[float, float, float, float]]) -> str:
    """One path for many rectangles (left, top, width, height); those that touch still do after rounding."""
    parts = []
    for left, top, wide, tall in cells:
        x, y = round(left, 1), round(top, 1)
        across, down = one(round(left + wide, 1) - x), one(round(top + tall, 1) - y)
        parts.append(f"M{x:g} {y:g}h{across}v{down}H{x:g}z")
    return "".join(parts)


def one(number: float) -> str:
    """A coordinate: one decimal, none where it is zero."""
    return f"{round(float(number), 1):g}"


def text(content: str) -> str:
    """What a folder said, as text of the page and of its attributes."""
    return html.escape(content, quote=True)


def label(x: float, y: float, content: str, kind: str, extra: str = "") -> str:
    """A word in a drawing; `kind` is its class."""
    return f'<text x="{one(x)}" y="{one(y)}" class="{kind}"{extra}>{text(content)}</text>'


def _pair(x: int, y: int) -> str:
    right = f"{y / 10:g}"
    return f"{x / 10:g}{right if right.startswith('-') else f' {right}'}"
