"""The models beside each other on each client's own examples, from client_scores.csv."""

from typing import TYPE_CHECKING

import numpy as np

from fedexp.maths.curve_metrics import is_metric_name
from fedexp.maths.metric_names import metric_text, metric_title
from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, of_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Models at the clients after the last round"
SERIES = {
    "global": "global model",
    "inside": "its cluster's model",
    "personal": "the model it uses",
    "mean": "clusters together (mean)",
}
_MARKERS = "osD^"
_LONGEST = 60  # letters of a metric
_MAX_CLIENTS = 40  # up to so many clients have a place each; of more the distribution is drawn


def figure(table: "pd.DataFrame") -> "Figure":
    """A dot for each client and kind of model, ordered by cluster, and the means of all; above 40 clients boxes.

    Of runs without clusters, those that trained stand before those that never did.
    """
    order = [name for name in ("cluster", "unseen", "client") if name in table]
    table = table.sort_values(order, kind="stable")
    few = len(table) <= _MAX_CLIENTS
    size = (max(6.5, 2.2 + 0.62 * len(table)) if few else 6.5, 4.2)
    drawn, axes = style.canvas(TITLE, "", f"{metric_title(metric(table))} on the client's own examples", size)
    axes.grid(visible=False, axis="x")
    if few:
        _draw_clients(axes, table)
        drawn.legend(loc="outside lower center", ncols=2 if len(table) < 8 else 4)
    else:
        _draw_boxes(axes, table)
    return drawn


def metric(table: "pd.DataFrame") -> str:
    """What the numbers are, as the table says."""
    names = set(table["metric"].tolist())
    name = names.pop() if len(names) == 1 else None
    return name if isinstance(name, str) and len(name) <= _LONGEST and is_metric_name(name) else "score"


def data(table: "pd.DataFrame") -> PictureData:
    """The scores at each client, and their means in words, with the clients that have no score."""
    series = _series(table)
    cells = {column: table[column].to_numpy(dtype=np.float64) for column in series}
    rows = [
        [client, *(_share_text(values[row]) for values in cells.values())] for row, client in enumerate(_names(table))
    ]
    means = [f"{series[column]} {_share_text(_mean(values))}{_part_text(values)}" for column, values in cells.items()]
    text = f"Mean {metric_text(metric(table))} over {len(table):,} clients: {', '.join(means)}."
    return of_table(Grid(("client", *series.values()), rows), "clients", text)


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def _part_text(values: np.ndarray) -> str:
    """How many clients have a score, where some have none, such as an AUROC of one class."""
    count = int(np.isfinite(values).sum())
    return f" ({count:,} of {len(values):,} have one)" if count < len(values) else ""


def _share_text(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else "-"


def _draw_clients(axes: "Axes", table: "pd.DataFrame") -> None:
    positions, end, series = np.arange(len(table)), len(table) + 0.3, _series(table)
    for number, (column, name) in enumerate(series.items()):
        shift, color, marker = 0.17 * (number - (len(series) - 1) / 2), style.COLORS[number], _MARKERS[number]
        values = table[column].to_numpy(dtype=np.float64)
        axes.plot(positions + shift, values, marker, color=color, markersize=6, label=name)
        axes.plot([end + shift], [_mean(values)], marker, color=color, markersize=8)
    axes.axvline(len(table) - 0.35, color=style.QUIET, linewidth=1)
    for position in positions[1:]:
        axes.axvline(position - 0.5, color=style.RULE, linewidth=0.8, zorder=0)
    suffixes, explanation = _label_suffixes(table)
    names = [f"{client}{word}" for client, word in zip(_names(table), suffixes, strict=True)]
    style.name_columns(axes, [*names, "mean"], [*positions.tolist(), end])
    axes.set_xlabel(f"Client{explanation}")


def _names(table: "pd.DataFrame") -> list[str]:
    """What the clients are called: their names, or their numbers."""
    return [str(client) for client in table["name" if "name" in table else "client"]]


def _series(table: "pd.DataFrame") -> dict[str, str]:
    """The models that the table has scores of; those that clients use only where these are not the global one."""
    series = {column: name for column, name in SERIES.items() if column in table and len(table[column].dropna())}
    if "global" in series and "personal" in series and table["personal"].equals(table["global"]):
        del series["personal"]
    return series


def _label_suffixes(table: "pd.DataFrame") -> tuple[list[str], str]:
    """What stands below the number of each client, and what that is."""
    if "cluster" in table:
        return [f"\n({cluster})" for cluster in table["cluster"]], ", (its cluster)"
    if "unseen" in table:
        return ["\n*" if unseen else "" for unseen in table["unseen"]], " (*: never trains)"
    return [""] * len(table), ""


def _draw_boxes(axes: "Axes", table: "pd.DataFrame") -> None:
    values = [table[column].dropna().to_numpy(dtype=np.float64) for column in _series(table)]
    lines = {name: {"color": style.INK} for name in ("boxprops", "whiskerprops", "capprops")}
    axes.boxplot(values, showmeans=True, widths=0.5, **lines)  # pyright: ignore[reportArgumentType]
    axes.set_xticks(range(1, len(values) + 1), labels=list(_series(table).values()), fontsize=8)
    axes.set_xlabel(f"{len(table):,} clients; the triangle is their mean")
