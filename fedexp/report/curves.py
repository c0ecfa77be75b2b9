"""`curves.png`: accuracy and loss over the rounds, from the table of metrics; above the accuracy the epsilon spent.

matplotlib and pandas are imported when a picture is drawn: they would slow every other command down.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.files import replacing
from fedexp.report import epsilon

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_BLUE, _ORANGE = "#1f77b4", "#ff7f0e"


def draw(path: Path, table: "pd.DataFrame") -> None:
    """Reads the columns `round`, `test_accuracy`, `test_loss`, `train_loss` and the ledger's; cells may be empty."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    _line(left, table, "test_accuracy", "Test", _BLUE)
    _line(right, table, "test_loss", "Test", _BLUE)
    _line(right, table, "train_loss", "Training", _ORANGE)
    _finish(left, "Accuracy on the test data", "Accuracy")
    _finish(right, "Loss", "Mean loss of an example")
    if left.lines and epsilon.COLUMN in table and np.isfinite(table[epsilon.COLUMN]).any():
        epsilon.above(left, table["round"].to_numpy(float), table[epsilon.COLUMN].to_numpy(float), "ε (PLD)")
    if right.lines:
        right.legend(frameon=False)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=150)


def _line(axes: "Axes", table: "pd.DataFrame", column: str, label: str, color: str) -> None:
    """Draws the evaluated rounds of one column; a short run also shows its points."""
    if column not in table:
        return
    values = table[column].to_numpy(dtype=np.float64)
    known = np.isfinite(values)
    if known.any():
        rounds = table["round"].to_numpy()[known]
        axes.plot(rounds, values[known], "o-" if len(rounds) <= 40 else "-", markersize=3.5, label=label, color=color)


def _finish(axes: "Axes", title: str, quantity: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, fontsize=11)
    axes.set_xlabel("Round")
    axes.set_ylabel(quantity)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    else:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not evaluated", transform=axes.transAxes, ha="center", va="center", color="#777777")
