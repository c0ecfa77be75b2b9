"""How often each client took part: client by client where they fit, and by rank, the most selected first."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.bands import Curve
from fedexp.report.html import plot
from fedexp.report.html.heat import Heat, draw
from fedexp.report.html.section import Section
from fedexp.report.methods import Method
from fedexp.report.runs import Run

_CLIENTS, _METHODS = 120, 40  # of a map of clients by methods
_NOTE = (
    "The number of rounds in which a client took part. By rank: the clients of each run sorted, the most selected "
    "first, so that a flat line is an even selection."
)


def section(methods: Sequence[Method]) -> Section | None:
    """Of the methods whose runs have clients.csv."""
    found = [method for method in methods if any(run.selections.any() for run in method.runs)]
    if not found:
        return None
    axes = plot.Axes(title="Selections by rank", horizontal="Rank of the client", vertical="Rounds", zero=True)
    return Section("selections", "Selections", _map(found) + plot.draw(axes, found, by_rank), _NOTE)


def by_rank(run: Run) -> Curve:
    """Ranks from 1, and the selections of the client of that rank."""
    counts = np.sort(run.selections)[::-1].astype(float) if run.selections.any() else np.zeros(0)
    return np.arange(1, len(counts) + 1, dtype=float), counts


def mean_selections(method: Method) -> np.ndarray:
    """The mean over the runs for each client, NaN for clients that a run does not have."""
    most = max(len(run.selections) for run in method.runs)
    counts = np.full((len(method.runs), most), np.nan)
    for row, run in enumerate(method.runs):
        counts[row, : len(run.selections)] = run.selections
    return np.nanmean(counts, axis=0)


def _map(methods: Sequence[Method]) -> str:
    means = [mean_selections(method) for method in methods]
    clients = max(map(len, means))
    if clients > _CLIENTS or len(methods) > _METHODS:
        return ""
    cells = np.full((len(means), clients), np.nan)
    for row, own in enumerate(means):
        cells[row, : len(own)] = own
    several = " (mean over seeds)" if any(len(method.runs) > 1 for method in methods) else ""
    columns = [str(client) for client in range(clients)]
    return draw(
        Heat(
            title=f"Rounds in which each client took part{several}",
            horizontal="Client",
            vertical="Method",
            rows=[method.label for method in methods],
            columns=columns,
            values=cells,
            told="rounds",
        )
    )
