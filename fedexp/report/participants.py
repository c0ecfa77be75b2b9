"""How many clients take part in a round, |S_t|."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedexp.report import bands, look
from fedexp.report.methods import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(methods: Sequence[Method]) -> "Figure | None":
    """One band a method over the rounds."""
    picture = look.figure(8, 3.6, methods)
    axes = picture.subplots()
    drawn = bands.draw(axes, methods, lambda run: bands.known(run.rounds.astype(float), run.column("participants")))
    if not drawn:
        return None
    look.finish(axes, "Participants of a round", "Round", "Clients that took part")
    look.whole(axes.xaxis)
    look.whole(axes.yaxis)
    axes.set_ylim(bottom=0)
    look.legend(picture, drawn)
    return picture
