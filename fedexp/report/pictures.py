"""All pictures of a report with their captions; a picture that has nothing to show is left out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core import csv_table
from fedexp.core.files import replacing
from fedexp.report import clusters, convergence, federation, learning, participants, privacy_curves, seconds, selections
from fedexp.report.methods import Method
from fedexp.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAND = (
    "The line is the mean over the seeds and the band reaches from the least to the greatest of them; the line is "
    "dotted where not all of the seeds got so far."
)
_CROSSES = "A cross, if any, marks a round of one seed in which the Shapley values did not converge."
_EPSILON = (
    "Epsilon is that of the federation, spent up to a round; one axis of it stands above the rounds where all ledgers "
    "agree, else a second panel shows the accuracy by the epsilon spent, and methods without one as horizontal lines."
)
_SHARED = "Where lines coincide, their colours alternate."
_CLUSTERS = {
    "clusters": "The cluster of each client in each round",
    "client_accuracy": "Accuracy of the models on what each client held out",
}


@dataclass(frozen=True)
class Picture:
    """A file's name without its ending, a heading and the caption."""

    name: str
    title: str
    caption: str


_MADE: tuple[tuple[Picture, Callable[[Sequence[Method]], "Figure | None"]], ...] = (
    (Picture("learning", "Learning curves", f"Accuracy and loss on the test data. {_BAND}"), learning.over_rounds),
    (
        Picture("learning_time", "Accuracy over simulated time", f"Accuracy by the simulated clock. {_BAND}"),
        learning.over_seconds,
    ),
    (
        Picture(
            "selections",
            "Selections of the clients",
            "Kernel density of the number of rounds a client took part in, the clients of all seeds pooled, cut at 0; "
            "a vertical line where all took part equally often.",
        ),
        selections.figure,
    ),
    (
        Picture("seconds_simulated", "Simulated seconds of a round", f"By the simulated clock. {_BAND} {_CROSSES}"),
        seconds.simulated,
    ),
    (Picture("seconds_host", "Seconds of a round", f"By the host's clock. {_BAND} {_CROSSES}"), seconds.host),
    (
        Picture(
            "convergence",
            "Convergence of the Shapley values",
            "Share of the rounds whose Shapley values converged; the bar is the mean over the seeds, a dot is a seed.",
        ),
        convergence.figure,
    ),
    (
        Picture("participants", "Participants", f"Clients that took part in a round. {_BAND} {_SHARED}"),
        participants.figure,
    ),
)


def draw(folder: Path, methods: Sequence[Method]) -> list[Picture]:
    """Writes every picture that has something to show as `NAME.png` and returns them in order."""
    drawn = []
    for picture, make in _MADE:
        figure = make(methods)
        if figure is not None:
            drawn.append(_saved(folder, picture, figure))
    for name, title, figure in privacy_curves.figures(methods):
        drawn.append(_saved(folder, Picture(name, title, f"{_EPSILON} {_BAND}"), figure))
    return [*drawn, *_draw_federations(folder, methods), *_draw_clusters(folder, methods)]


def _saved(folder: Path, picture: Picture, figure: "Figure") -> Picture:
    with replacing(folder / f"{picture.name}.png") as partial:
        figure.savefig(partial, format="png", dpi=150)
    return picture


@dataclass(frozen=True, eq=False)
class SplitTable:
    """Examples `counts [N, K]` of the named classes that the clients hold, and whose division it is."""

    counts: np.ndarray
    classes: Sequence[str]
    told: str


def divisions(methods: Sequence[Method]) -> list[SplitTable]:
    """Each different division of the data among the clients, once."""
    splits: dict[bytes, list[tuple[Method, Run]]] = {}
    for method in methods:
        for run in method.runs:
            path = run.folder / "federation.csv"
            if path.is_file():
                splits.setdefault(path.read_bytes(), []).append((method, run))
    tables = [(csv_table.frame(users[0][1].folder / "federation.csv"), users) for users in splits.values()]
    return [
        SplitTable(table.iloc[:, 2:].to_numpy(), [str(name) for name in table.columns[2:]], _users(users, methods))
        for table, users in tables
        if len(table) and len(table.columns) > 2
    ]


def _draw_federations(folder: Path, methods: Sequence[Method]) -> Iterator[Picture]:
    for number, division in enumerate(divisions(methods), start=1):
        name = f"federation_{number}"
        federation.draw(folder / f"{name}.png", division.counts, division.classes)
        yield Picture(name, "Federations", f"Examples of each class that the clients hold: {division.told}.")


def _draw_clusters(folder: Path, methods: Sequence[Method]) -> Iterator[Picture]:
    """Of the first run of every method that has clusters: who was where, and what it came to."""
    for method in methods:
        run, prefix = method.runs[0], f"method_{method.position + 1}_"
        for name in clusters.draw(run.folder, len(run.selections), int(run.rounds[-1]), prefix, folder):
            seed = f"{method.label}, seed {run.seed}" if run.seed is not None else method.label
            yield Picture(name, "Clusters", f"{_CLUSTERS[name.removeprefix(prefix)]}: {seed}.")


def _users(users: Sequence[tuple[Method, Run]], methods: Sequence[Method]) -> str:
    """Which seeds, and which methods unless it is all of them."""
    seeds = sorted({run.seed for _, run in users if run.seed is not None})
    named = list(dict.fromkeys(method.label for method, _ in users))
    of_seeds = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}" if seeds else "unknown seed"
    return f"{of_seeds} of {'every method' if len(named) == len(methods) else '; '.join(named)}"
