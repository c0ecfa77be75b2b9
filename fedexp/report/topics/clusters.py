"""Who was in which cluster and what it came to: `clusters.png` and `client_accuracy.png` of a run, and in a report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.files import run_tables
from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.measures import statistic
from fedexp.report.read.methods import Method
from fedexp.report.topics import client_accuracy, membership
from fedexp.report.topics.client_accuracy import SERIES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EVENTS = ("round", "event", "client", "cluster")
_MOST = 6
_TITLES = {"clusters": membership.TITLE, "client_accuracy": client_accuracy.TITLE}


@style.style()
def draw(folder: Path, clients: int, rounds: int) -> list[str]:
    """Draws what the folder has tables for and returns the names of the pictures, without their ending."""
    drawn = []
    for name, figure in figures(folder, clients, rounds):
        style.save(folder / f"{name}.png", figure)
        drawn.append(name)
    return drawn


def figures(folder: Path, clients: int, rounds: int) -> "Iterator[tuple[str, Figure]]":
    """Yields the figures of a run folder's tables, with the names of the tables."""
    if (folder / "clusters.csv").is_file():
        events = run_tables.read_frame(folder / "clusters.csv", EVENTS)
        clients = max(clients, 1 + max(events["client"].tolist())) if len(events) else clients
        yield "clusters", membership.figure(events, clients, rounds)
    if len(table := _accuracies(folder)):
        yield "client_accuracy", client_accuracy.figure(table)


def build_section(methods: Sequence[Method]) -> Section | None:
    """The pictures of the first run of each of the first methods, and the mean accuracies of all."""
    clustered = [
        method for method in methods if any((method.runs[0].folder / f"{name}.csv").is_file() for name in _TITLES)
    ]
    pictures = [picture for method in clustered[:_MOST] for picture in _pictures(method)]
    limit_note = f" The first {_MOST} of {len(clustered)} methods." if len(clustered) > _MOST else ""
    divided = any((method.runs[0].folder / "clusters.csv").is_file() for method in clustered)
    title, explained = ("Clusters", f" {membership.NOTE}") if divided else ("Models at the clients", "")
    return section(
        "clusters", title, f"Of the first run of each method.{explained}{limit_note}", pictures, _means(methods)
    )


def _pictures(method: Method) -> Iterator[Picture]:
    run = method.runs[0]
    seed = f"{method.label}, seed {run.seed}" if run.seed is not None else method.label
    for name, figure in figures(run.folder, len(run.selections), int(run.rounds[-1])):
        title, file = _TITLES[name], f"method_{method.position + 1}_{name}"
        yield Picture(name=file, title=title, figure=figure, caption=f"{seed}.", tab=method.label)


def _means(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    rows = []
    for method in methods:
        tables = [table for run in method.runs if len(table := _accuracies(run.folder))]
        if tables:
            means = [statistic([_mean(table, model) for table in tables]).mean for model in SERIES]
            rows.append([method.label, *("-" if mean is None else f"{mean:.4f}" for mean in means)])
    caption = "Accuracy on what the clients held out, mean over clients"
    return [(caption, Grid(("method", *SERIES.values()), rows))] if rows else []


def _accuracies(folder: Path) -> "pd.DataFrame":
    return run_tables.read_frame(folder / "client_accuracy.csv", ("client", "global", "personal"))


def _mean(table: "pd.DataFrame", model: str) -> float | None:
    if model not in table:
        return None
    values = table[model].dropna().to_numpy(dtype=np.float64)
    return float(values.mean()) if len(values) else None
