"""`client_accuracy.png`: the models beside each other on what each client held out, from client_accuracy.csv.

matplotlib is imported when a picture is drawn: it would slow every other command down.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.files import replacing
from fedexp.report.look import COLORS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SERIES = (
    ("global", "global model", "o"),
    ("inside", "its cluster's model", "s"),
    ("personal", "its own model", "D"),
    ("mean", "clusters together (mean)", "^"),
)
_SINGLY = 40  # up to so many clients have a place each; of more the distribution is drawn


def draw(path: Path, table: "pd.DataFrame") -> None:
    """A dot for each client and kind of model, ordered by cluster, and the means of all; above 40 clients boxes."""
    from matplotlib.figure import Figure

    table = table.sort_values(["cluster", "client"], kind="stable")
    few = len(table) <= _SINGLY
    figure = Figure(figsize=(max(6.5, 2.2 + 0.62 * len(table)) if few else 6.5, 4.2), layout="constrained")
    axes = figure.subplots()
    if few:
        _draw_clients(axes, table)
        figure.legend(loc="outside lower center", ncols=2 if len(table) < 8 else 4, frameon=False, fontsize=9)
    else:
        _draw_boxes(axes, table)
    axes.set_ylabel("Accuracy on what the client held out")
    axes.set_title("Accuracy at the clients after the last round", fontsize=11)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=150)


def _draw_clients(axes: "Axes", table: "pd.DataFrame") -> None:
    place, end = np.arange(len(table)), len(table) + 0.3
    for number, (column, name, marker) in enumerate(_SERIES):
        shift, color = 0.17 * (number - 1.5), COLORS[number]
        values = table[column].to_numpy(dtype=np.float64)
        axes.plot(place + shift, values, marker, color=color, markersize=6, label=name)
        axes.plot([end + shift], [values.mean()], marker, color=color, markersize=8)
    axes.axvline(len(table) - 0.35, color="#999999", linewidth=1)
    for left in place[1:]:
        axes.axvline(left - 0.5, color="#eeeeee", linewidth=0.8, zorder=0)
    names = [f"{client}\n({cluster})" for client, cluster in zip(table["client"], table["cluster"], strict=True)]
    axes.set_xticks(np.append(place, end), labels=[*names, "mean"], fontsize=9)
    axes.set_xlabel("Client, (its cluster)")


def _draw_boxes(axes: "Axes", table: "pd.DataFrame") -> None:
    values = [table[column].dropna().to_numpy(dtype=np.float64) for column, _, _ in _SERIES]
    axes.boxplot(values, showmeans=True, widths=0.5)
    axes.set_xticks(range(1, len(_SERIES) + 1), labels=[name for _, name, _ in _SERIES], fontsize=8)
    axes.set_xlabel(f"{len(table):,} clients; the triangle is their mean")
