"""How many clients take part in a round, |S_t|.

Many methods ask for the same number, so lines in the same place share it: their colours alternate.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report import bands, look
from fedexp.report.methods import Method
from fedexp.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Found = tuple[Method, bands.Band]
_DASH = 5.0  # widths of the line


def figure(methods: Sequence[Method]) -> "Figure | None":
    """One band a method over the rounds."""
    found = [(method, one) for method in methods if (one := bands.of(method, _participants)) is not None]
    if not found:
        return None
    drawn = [method for method, _ in found]
    picture = look.figure(8, 3.6, drawn)
    axes = picture.subplots()
    for same in coinciding(found):
        _draw(axes, same)
    look.finish(axes, bands.titled("Participants of a round", drawn), "Round", "Clients that took part")
    look.whole(axes.xaxis)
    look.whole(axes.yaxis)
    axes.set_ylim(bottom=0)
    look.legend(picture, drawn)
    return picture


def coinciding(found: Sequence[Found]) -> list[list[Found]]:
    """Groups the methods whose means are equal as far as both go."""
    groups: list[list[Found]] = []
    for method, one in found:
        home = next((group for group in groups if _equal(group[0][1], one)), None)
        if home is None:
            groups.append([(method, one)])
        else:
            home.append((method, one))
    return groups


def _participants(run: Run) -> bands.Curve:
    return bands.known(run.rounds.astype(float), run.column("participants"))


def _equal(one: bands.Band, other: bands.Band) -> bool:
    common = min(len(one.x), len(other.x))
    return all(np.array_equal(a[:common], b[:common]) for a, b in ((one.x, other.x), (one.mean, other.mean)))


def _draw(axes: "Axes", same: Sequence[Found]) -> None:
    for turn, (method, one) in enumerate(same):
        bands.shade(axes, one, method)
        if len(same) == 1 or len(one.x) == 1:
            bands.line(axes, one, method)
        else:
            dashes = (turn * _DASH, (_DASH, (len(same) - 1) * _DASH))
            axes.plot(one.x, one.mean, **{**look.line(method), "linestyle": dashes}, dash_capstyle="butt")
