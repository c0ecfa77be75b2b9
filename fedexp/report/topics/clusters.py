"""Who was in which cluster and what it came to: `clusters.png` and `client_scores.png` of a run, and in a report.

In the picture of clusters.csv column r is round r, 0 what was before the first one. A client that arrived waits in the
queue of its cluster until the round in which it joins. Legend: N clients.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fedexp.files import run_tables
from fedexp.maths.metric_names import metric_text
from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.measures import statistic
from fedexp.report.read.methods import Method
from fedexp.report.read.site_names import label, names_by_client
from fedexp.report.topics import client_scores
from fedexp.report.topics.client_scores import SERIES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EVENTS = ("round", "event", "client", "cluster")
_MOST = 6  # methods in a report
_TITLES = {"clusters": "Clusters of the clients", "client_scores": client_scores.TITLE}
_NOTE = (
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


@style.style()
def draw(folder: Path, clients: int, rounds: int) -> list[str]:
    """Draws what the folder has tables for and returns the names of the pictures, without their ending."""
    drawn = []
    for name, figure, _ in figures(folder, clients, rounds):
        style.save(folder / f"{name}.png", figure)
        drawn.append(name)
    return drawn


def figures(folder: Path, clients: int, rounds: int) -> "Iterator[tuple[str, Figure, PictureData]]":
    """Yields the figures of a run folder's tables, with the names of the tables and the numbers."""
    if (folder / "clusters.csv").is_file():
        events = run_tables.read_frame(folder / "clusters.csv", EVENTS)
        clients = max(clients, 1 + max(events["client"].tolist())) if len(events) else clients
        members, names = memberships(events, clients, rounds), names_by_client(folder / "federation.csv")
        yield "clusters", membership_figure(members, names), _membership_data(members, names)
    if len(table := _scores(folder)):
        yield "client_scores", client_scores.figure(table), client_scores.data(table)


def build_section(methods: Sequence[Method]) -> Section | None:
    """The pictures of the first run of each of the first methods, and the mean scores of all."""
    clustered = [
        method for method in methods if any((method.runs[0].folder / f"{name}.csv").is_file() for name in _TITLES)
    ]
    pictures = [picture for method in clustered[:_MOST] for picture in _pictures(method)]
    limit_note = f" The first {_MOST} of {len(clustered)} methods." if len(clustered) > _MOST else ""
    divided = any((method.runs[0].folder / "clusters.csv").is_file() for method in clustered)
    title, explained = ("Clusters", f" {_NOTE}") if divided else ("Models at the clients", "")
    return section(
        "clusters", title, f"Of the first run of each method.{explained}{limit_note}", pictures, _means(methods)
    )


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


def membership_figure(members: Memberships, names: Mapping[int, str] = MappingProxyType({})) -> "Figure":
    """Clients as rows, ordered by their last cluster, and rounds as columns."""
    clients, rounds = len(members.cluster), members.cluster.shape[1] - 1
    shown, rows = order_by_cluster(members)
    size = (min(12.0, max(6.5, 3.0 + 0.22 * rounds)), 1.5 + min(9.0, max(1.6, 0.26 * len(rows))))
    drawn, axes = style.canvas(_TITLES["clusters"], "Round", "Client", size)
    _paint(axes, shown)
    style.integer_ticks(axes.xaxis)
    axes.set_xlim(-0.5, rounds + 0.5)
    if len(rows) <= _NUMBERED:
        axes.set_yticks(range(len(rows)), labels=[style.shorten(label(client, names)) for client in rows], fontsize=8)
    else:
        axes.set_yticks([])
        part = f"{len(rows)} of {clients:,}" if len(rows) < clients else f"{clients:,}"
        axes.set_ylabel(f"{part} clients by their last cluster")
    _add_legend(drawn, shown)
    return drawn


def color_of(cluster: int) -> str:
    """The colour of a cluster; after seven they repeat."""
    return style.COLORS[(cluster - 1) % len(style.COLORS)]


def _membership_data(members: Memberships, names: Mapping[int, str]) -> PictureData:
    """The last cluster of each client, and in how many rounds it trained."""
    last, trained = members.cluster[:, -1], members.trained.sum(axis=1)
    rows = [[label(client, names), str(cluster or "-"), str(trained[client])] for client, cluster in enumerate(last)]
    sizes = [f"{(last == cluster).sum()} in cluster {cluster}" for cluster in np.unique(last[last > 0])]
    text = f"Clients at the end: {', '.join(sizes) or 'none in a cluster'}."
    return of_table(Grid(("client", "last cluster", "rounds trained"), rows), "clients", text)


def _pictures(method: Method) -> Iterator[Picture]:
    run = method.runs[0]
    seed = f"{method.label}, seed {run.seed}" if run.seed is not None else method.label
    for name, figure, data in figures(run.folder, len(run.selections), int(run.rounds[-1])):
        title, file = _TITLES[name], f"method_{method.position + 1}_{name}"
        yield Picture(name=file, title=title, figure=figure, data=data, caption=f"{seed}.", tab=method.label)


def _means(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    rows: dict[str, list[list[str]]] = {}
    for method in methods:
        tables = [table for run in method.runs if len(table := _scores(run.folder))]
        if tables:
            means = [statistic([_mean(table, model) for table in tables]).mean for model in SERIES]
            row = [method.label, *("-" if mean is None else f"{mean:.4f}" for mean in means)]
            rows.setdefault(client_scores.metric(tables[0]), []).append(row)
    return [
        (
            f"Mean {metric_text(metric)} over the clients with such a model, and over the seeds",
            _without_empty_columns(lines),
        )
        for metric, lines in rows.items()
    ]


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> Grid:
    """A table of the kinds of models that some method has."""
    columns = [0, *(n for n in range(1, len(SERIES) + 1) if any(row[n] != "-" for row in rows))]
    headings = ("method", *SERIES.values())
    return Grid([headings[n] for n in columns], [[row[n] for n in columns] for row in rows])


def _scores(folder: Path) -> "pd.DataFrame":
    path = folder / "client_scores.csv"
    table = run_tables.read_frame(path, ("client", "metric", "global", "personal"))
    if names := names_by_client(path):
        table["name"] = [label(client, names) for client in table["client"]]  # as texts, also 7 and NA
    return table


def _mean(table: "pd.DataFrame", model: str) -> float | None:
    if model not in table:
        return None
    values = table[model].dropna().to_numpy(dtype=np.float64)
    return float(values.mean()) if len(values) else None


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
