"""`clusters.png`: which client was in which cluster, round by round, from clusters.csv.

Column r is round r, 0 what was before the first one. A client that arrived waits in the queue of its cluster until the
round in which it joins. Legend: N clients. matplotlib is imported when a picture is drawn.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.files import replacing
from fedexp.report.look import COLORS, whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NUMBERED = 40  # up to so many clients have a label each
_HATCHED = 2000  # up to so many cells are hatched or dotted one by one
_WAITING, _ABSENT = "#d9d9d9", "#ffffff"


@dataclass(frozen=True)
class Memberships:
    """Of every client and round, `[N, rounds + 1]`: the cluster from 1 (0: none), who waits for it, and who trained."""

    cluster: np.ndarray
    waiting: np.ndarray
    trained: np.ndarray


def memberships(events: "pd.DataFrame", clients: int, rounds: int) -> Memberships:
    """What the events of clusters.csv say of every round; those of the server's own row are left out."""
    cluster = np.zeros((clients, rounds + 1), dtype=np.int64)
    waiting, trained = np.zeros_like(cluster, dtype=bool), np.zeros_like(cluster, dtype=bool)
    columns = (events[name].tolist() for name in ("round", "event", "client", "cluster"))
    for number, what, client, own in zip(*columns, strict=True):
        if client < 0 or number > rounds:
            continue
        if what in ("queue", "join", "leave"):
            cluster[client, number:] = own if what != "leave" else 0
            waiting[client, number:] = what == "queue"
        elif what == "model":
            trained[client, number] = own > 0
    return Memberships(cluster, waiting, trained)


def draw(path: Path, events: "pd.DataFrame", clients: int, rounds: int) -> None:
    """Clients as rows, ordered by their last cluster, and rounds as columns."""
    from matplotlib.figure import Figure

    found = memberships(events, clients, rounds)
    order = np.argsort(found.cluster[:, -1], kind="stable")
    shown = Memberships(found.cluster[order], found.waiting[order], found.trained[order])
    height = 1.5 + min(9.0, max(1.6, 0.26 * clients))
    figure = Figure(figsize=(min(12.0, max(7.0, 3.0 + 0.22 * rounds)), height), layout="constrained")
    axes = figure.subplots()
    _paint(axes, shown)
    _label(axes, order, rounds)
    handles, names = _key(shown)
    figure.legend(handles, names, loc="outside lower center", ncols=min(6, len(names)), frameon=False, fontsize=9)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=150)


def color_of(cluster: int) -> str:
    """The colour of a cluster; after seven they repeat."""
    return COLORS[(cluster - 1) % len(COLORS)]


def _paint(axes: "Axes", shown: Memberships) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    clusters = int(shown.cluster.max(initial=0))
    palette = np.array([to_rgb(_ABSENT), *(to_rgb(color_of(one)) for one in range(1, clusters + 1)), to_rgb(_WAITING)])
    cells = np.where(shown.waiting, clusters + 1, shown.cluster)
    axes.imshow(palette[cells], aspect="auto", interpolation="nearest")
    queued = np.argwhere(shown.waiting)
    for row, column in queued[: _HATCHED if len(queued) <= _HATCHED else 0].tolist():
        own = color_of(int(shown.cluster[row, column]))
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor=own, linewidth=0))
    took = np.argwhere(shown.trained)
    if len(took) <= _HATCHED:
        axes.plot(took[:, 1], took[:, 0], "o", color="white", markersize=2.5)
    if len(cells) <= _NUMBERED:
        axes.hlines(np.arange(1, len(cells)) - 0.5, -0.5, cells.shape[1] - 0.5, color="white", linewidth=1.5)


def _label(axes: "Axes", order: np.ndarray, rounds: int) -> None:
    whole(axes.xaxis)
    axes.set_xlim(-0.5, rounds + 0.5)
    axes.set_xlabel("Round")
    axes.set_title("Clusters of the clients", fontsize=11)
    if len(order) <= _NUMBERED:
        axes.set_yticks(range(len(order)), labels=[str(client) for client in order], fontsize=8)
        axes.set_ylabel("Client")
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{len(order):,} clients by their last cluster")
    axes.spines[["top", "right"]].set_visible(False)


def _key(shown: Memberships) -> tuple[list, list[str]]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    members = np.where(shown.waiting, 0, shown.cluster)
    there = [int(one) for one in np.unique(members[members > 0])]
    handles: list = [Patch(color=color_of(one)) for one in there[: 2 * len(COLORS)]]
    names = [f"cluster {one}" for one in there[: 2 * len(COLORS)]]
    if shown.waiting.any():
        handles.append(Patch(facecolor=_WAITING, edgecolor="#777777", hatch="////", linewidth=0))
        names.append("waits for it")
    if 0 < shown.trained.sum() <= _HATCHED:
        handles.append(Line2D([], [], linestyle="", marker="o", markersize=4, color="white", markeredgecolor="#777777"))
        names.append("trained")
    return handles, names
