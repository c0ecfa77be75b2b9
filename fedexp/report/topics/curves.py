"""`curves.png`: the main metric over rounds and over megabytes sent, and the loss; above the metric the epsilon."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.maths.curve_metrics import main_metric
from fedexp.maths.metric_names import metric_title
from fedexp.report.draw import style
from fedexp.report.read import epsilon

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@style.style()
def draw(path: Path, table: "pd.DataFrame") -> None:
    """Reads `round`, the main metric, `test_loss`, `train_loss`, the traffic and the ledger; cells may be empty."""
    from matplotlib.figure import Figure

    metric = main_metric(table)
    figure = Figure(figsize=(14, 4), layout="constrained")
    metric_axes, traffic_axes, loss_axes = figure.subplots(1, 3)
    metric_axes.set(title=f"{metric_title(metric)} on the test data", xlabel="Round", ylabel=metric_title(metric))
    traffic_axes.set(title=f"{metric_title(metric)} by traffic", xlabel="Megabytes sent", ylabel=metric_title(metric))
    loss_axes.set(title="Loss", xlabel="Round", ylabel="Mean loss of an example")
    _draw_line(metric_axes, table, f"test_{metric}", "Test", style.COLORS[0])
    if "mb_up" in table and "mb_down" in table:
        sent = (table["mb_down"] + table["mb_up"]).cumsum()
        _draw_line(traffic_axes, table.assign(sent=sent), f"test_{metric}", "Test", style.COLORS[0], "sent")
    _draw_line(loss_axes, table, "test_loss", "Test", style.COLORS[0])
    _draw_line(loss_axes, table, "train_loss", "Training", style.COLORS[1])
    if metric_axes.lines and epsilon.COLUMN in table and np.isfinite(table[epsilon.COLUMN]).any():
        epsilon.add_top_axis(
            metric_axes, table["round"].to_numpy(float), table[epsilon.COLUMN].to_numpy(float), "ε (PLD)"
        )
    if loss_axes.lines:
        loss_axes.legend()
    for axes in (metric_axes, traffic_axes, loss_axes):
        _finish(axes, integer_x=axes is not traffic_axes)
    style.save(path, figure)


def _draw_line(
    axes: "Axes", table: "pd.DataFrame", column: str, label: str, color: str, x_column: str = "round"
) -> None:
    """Draws the evaluated rounds of one column over another; a short run also shows its points."""
    if column not in table:
        return
    values = table[column].to_numpy(dtype=np.float64)
    finite = np.isfinite(values)
    if finite.any():
        rounds = table[x_column].to_numpy()[finite]
        axes.plot(rounds, values[finite], "o-" if len(rounds) <= 40 else "-", markersize=3.5, label=label, color=color)


def _finish(axes: "Axes", integer_x: bool) -> None:
    if axes.lines:
        if integer_x:
            style.integer_ticks(axes.xaxis)
    else:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not evaluated", transform=axes.transAxes, ha="center", va="center", color=style.QUIET)
