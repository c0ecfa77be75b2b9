"""How many clients take part in a round, |S_t|."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedexp.report import bands, look
from fedexp.report.methods import Method
from fedexp.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDEST = 9.0


def figure(methods: Sequence[Method]) -> "Figure | None":
    """One band a method over the rounds."""
    picture = look.figure(8, 3.6, methods)
    axes = picture.subplots()
    widening = min(1.8, _WIDEST / len(methods))  # many methods ask for the same number
    drawn = bands.draw(axes, methods, _participants, widening)
    if not drawn:
        return None
    look.finish(axes, bands.titled("Participants of a round", drawn), "Round", "Clients that took part")
    look.whole(axes.xaxis)
    look.whole(axes.yaxis)
    axes.set_ylim(bottom=0)
    look.legend(picture, drawn)
    return picture


def _participants(run: Run) -> bands.Curve:
    return bands.known(run.rounds.astype(float), run.column("participants"))
