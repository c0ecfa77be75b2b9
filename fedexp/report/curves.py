"""`curves.png`: accuracy and loss over the rounds, from the table of metrics; above the accuracy the epsilon spent."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report import epsilon, look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@look.style()
def draw(path: Path, table: "pd.DataFrame") -> None:
    """Reads the columns `round`, `test_accuracy`, `test_loss`, `train_loss` and the ledger's; cells may be empty."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    left.set(title="Accuracy on the test data", xlabel="Round", ylabel="Accuracy")
    right.set(title="Loss", xlabel="Round", ylabel="Mean loss of an example")
    _line(left, table, "test_accuracy", "Test", look.COLORS[0])
    _line(right, table, "test_loss", "Test", look.COLORS[0])
    _line(right, table, "train_loss", "Training", look.COLORS[1])
    if left.lines and epsilon.COLUMN in table and np.isfinite(table[epsilon.COLUMN]).any():
        epsilon.above(left, table["round"].to_numpy(float), table[epsilon.COLUMN].to_numpy(float), "ε (PLD)")
    if right.lines:
        right.legend()
    for axes in (left, right):
        _finish(axes)
    look.save(path, figure)


def _line(axes: "Axes", table: "pd.DataFrame", column: str, label: str, color: str) -> None:
    """Draws the evaluated rounds of one column; a short run also shows its points."""
    if column not in table:
        return
    values = table[column].to_numpy(dtype=np.float64)
    known = np.isfinite(values)
    if known.any():
        rounds = table["round"].to_numpy()[known]
        axes.plot(rounds, values[known], "o-" if len(rounds) <= 40 else "-", markersize=3.5, label=label, color=color)


def _finish(axes: "Axes") -> None:
    if axes.lines:
        look.whole(axes.xaxis)
    else:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not evaluated", transform=axes.transAxes, ha="center", va="center", color=look.QUIET)
