"""Which client was in which cluster, round by round, from clusters.csv.

Column r is round r, 0 what was before the first one. A client that arrived waits in the queue of its cluster until the
round in which it joins. Legend: N clients.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report.draw import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Clusters of the clients"
NOTE = (
    "Clients are ordered by their last cluster; column 0 is before the first round. In a pale cell a client waits for "
    "its cluster; a dot, if any, is a client that trained."
)
_NUMBERED = 40  # up to so many clients have a label each
_ROWS = 400  # of more clients evenly chosen ones are shown
_DOTTED = 2000  # up to so many cells have dots
_NAMED = 14  # clusters in the legend
_WAITING = 0.35  # how strong the colour of a cell is


@dataclass(frozen=True)
class Memberships:
    """Of every client and round, `[N, rounds + 1]`: the cluster from 1 (0: none), who waits for it, and who trained."""

    cluster: np.ndarray
    waiting: np.ndarray
    trained: np.ndarray


def memberships(events: "pd.DataFrame", clients: int, rounds: int) -> Memberships:
    """Returns the state of every client in every round, from clusters.csv; rows of the server are left out."""
    cluster = np.zeros((clients, rounds + 1), dtype=np.int64)
    waiting, trained = np.zeros_like(cluster, dtype=bool), np.zeros_like(cluster, dtype=bool)
    columns = (events[name].tolist() for name in ("round", "event", "client", "cluster"))
    for number, event, client, cluster_id in zip(*columns, strict=True):
        if client < 0 or number > rounds:
            continue
        if event in ("queue", "join", "leave"):
            cluster[client, number:] = cluster_id if event != "leave" else 0
            waiting[client, number:] = event == "queue"
        elif event == "model":
            trained[client, number] = cluster_id > 0
    return Memberships(cluster, waiting, trained)


def order_by_cluster(members: Memberships) -> tuple[Memberships, list[int]]:
    """The clients by their last cluster, of very many evenly chosen ones, and who they are."""
    order = np.argsort(members.cluster[:, -1], kind="stable")
    if len(order) > _ROWS:
        order = order[np.rint(np.linspace(0, len(order) - 1, _ROWS)).astype(np.int64)]
    return Memberships(members.cluster[order], members.waiting[order], members.trained[order]), order.tolist()


def figure(events: "pd.DataFrame", clients: int, rounds: int) -> "Figure":
    """Clients as rows, ordered by their last cluster, and rounds as columns."""
    shown, rows = order_by_cluster(memberships(events, clients, rounds))
    size = (min(12.0, max(6.5, 3.0 + 0.22 * rounds)), 1.5 + min(9.0, max(1.6, 0.26 * len(rows))))
    drawn, axes = style.canvas(TITLE, "Round", "Client", size)
    _paint(axes, shown)
    style.integer_ticks(axes.xaxis)
    axes.set_xlim(-0.5, rounds + 0.5)
    if len(rows) <= _NUMBERED:
        axes.set_yticks(range(len(rows)), labels=[str(client) for client in rows], fontsize=8)
    else:
        axes.set_yticks([])
        part = f"{len(rows)} of {clients:,}" if len(rows) < clients else f"{clients:,}"
        axes.set_ylabel(f"{part} clients by their last cluster")
    _add_legend(drawn, shown)
    return drawn


def color_of(cluster: int) -> str:
    """The colour of a cluster; after seven they repeat."""
    return style.COLORS[(cluster - 1) % len(style.COLORS)]


def _paint(axes: "Axes", shown: Memberships) -> None:
    from matplotlib.colors import to_rgb

    clusters = int(shown.cluster.max(initial=0))
    palette = np.zeros((clusters + 1, 4))  # nothing where there is no cluster
    for cluster in range(1, clusters + 1):
        palette[cluster] = (*to_rgb(color_of(cluster)), 1.0)
    cells = palette[shown.cluster]
    cells[shown.waiting, 3] *= _WAITING
    axes.imshow(cells, aspect="auto", interpolation="none")
    axes.grid(visible=False)
    trained_cells = np.argwhere(shown.trained)
    if len(trained_cells) <= _DOTTED:
        axes.plot(trained_cells[:, 1], trained_cells[:, 0], "o", color="white", markersize=2.5, rasterized=True)
    if len(cells) <= _NUMBERED:
        axes.hlines(np.arange(1, len(cells)) - 0.5, -0.5, cells.shape[1] - 0.5, color=style.PAPER, linewidth=1.5)


def _add_legend(drawn: "Figure", shown: Memberships) -> None:
    from matplotlib.patches import Patch

    clusters = [int(cluster) for cluster in np.unique(shown.cluster) if cluster > 0][:_NAMED]
    if clusters:
        handles = [Patch(color=color_of(cluster), label=f"cluster {cluster}") for cluster in clusters]
        drawn.legend(handles=handles, loc="outside lower center", ncols=min(6, len(clusters)))
