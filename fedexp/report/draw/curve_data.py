"""The numbers behind curves: where each begins and ends, a table of its points, and the values at each position."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.draw import style
from fedexp.report.draw.band import Band, choose_evenly, thin_out
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, enumerate_methods, number_text, shorten_table
from fedexp.report.read.methods import Method

_TIPS = 60  # positions with a text under the pointer
_POINTS = 12  # of a method, in a table of curves that have no positions in common
Drawn = Sequence[tuple[Method, Band]]


def describe(drawn_bands: Drawn, horizontal: str, vertical: str) -> PictureData:
    """The data of the bands, whose positions are `horizontal` and whose values are `vertical`."""
    positions = np.unique(np.concatenate([method_band.x for _, method_band in drawn_bands]))
    longest = max(len(method_band.x) for _, method_band in drawn_bands)
    if len(positions) <= 2 * longest:  # most of them in common
        table = _by_position(drawn_bands, positions, horizontal)
    else:
        table = _by_method(drawn_bands, horizontal, vertical)
    shown, note = shorten_table(table, "points")
    text = enumerate_methods([_course_text(method, method_band, horizontal) for method, method_band in drawn_bands])
    few = len(drawn_bands) <= style.CROWD
    tips = [
        (float(x), _tip(drawn_bands, float(x), horizontal))
        for x in positions[choose_evenly(len(positions), _TIPS if few else 0)]
    ]
    return PictureData(f"{vertical}. {text}", shown, note, tips)


def _course_text(method: Method, method_band: Band, horizontal: str) -> str:
    x, mean, last = method_band.x, method_band.mean, method_band.end
    end = f"{number_text(mean[last])} at {horizontal.lower()} {number_text(x[last])}"
    if not last:
        return f"{method.label} {end}"
    return f"{method.label} from {number_text(mean[0])} at {horizontal.lower()} {number_text(x[0])} to {end}"


def _by_position(drawn_bands: Drawn, positions: np.ndarray, horizontal: str) -> Grid:
    """A row a position, a column a method."""
    columns = [
        {float(x): _value_text(method_band, index) for index, x in enumerate(method_band.x)}
        for _, method_band in drawn_bands
    ]
    rows = [[number_text(x), *(column.get(float(x), "-") for column in columns)] for x in positions]
    return Grid((horizontal, *(method.label for method, _ in drawn_bands)), rows)


def _by_method(drawn_bands: Drawn, horizontal: str, vertical: str) -> Grid:
    """A row a method and position."""
    rows = []
    for method, method_band in drawn_bands:
        thin = thin_out(method_band, _POINTS)
        rows += [[method.label, number_text(x), _value_text(thin, index)] for index, x in enumerate(thin.x)]
    return Grid(("method", horizontal, vertical), rows)


def _value_text(method_band: Band, index: int) -> str:
    """The mean, and the range where there is one."""
    low, high = method_band.low[index], method_band.high[index]
    spread = f" ({number_text(low)} to {number_text(high)})" if high > low else ""
    return f"{number_text(method_band.mean[index])}{spread}"


def _tip(drawn_bands: Drawn, x: float, horizontal: str) -> str:
    lines = [f"{horizontal} {number_text(x)}"]
    for method, method_band in drawn_bands:
        index = int(np.searchsorted(method_band.x, x, side="right")) - 1  # the last value up to there
        if index >= 0:
            lines.append(f"{method.label}: {_value_text(method_band, index)}")
    return "\n".join(lines)
