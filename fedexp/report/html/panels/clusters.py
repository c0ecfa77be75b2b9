"""Which client was in which cluster round by round, and how good the models are at the clients in the end."""

from collections.abc import Sequence

import numpy as np

from fedexp.core import csv_table
from fedexp.report.html import svg
from fedexp.report.html.bars import swatches
from fedexp.report.html.heat import Heat, draw, layout
from fedexp.report.html.section import Section, tabs
from fedexp.report.html.table import table
from fedexp.report.markup import Grid
from fedexp.report.measures import statistic
from fedexp.report.membership import Memberships, memberships
from fedexp.report.methods import Method
from fedexp.report.runs import Run

_MOST, _ROWS, _DOTS = 6, 120, 4000
_MODELS = {
    "global": "global model",
    "inside": "its cluster's model",
    "personal": "its own model",
    "mean": "clusters together (mean)",
}
_NOTE = (
    "Of the first run of each method; column 0 is before the first round. Clients are ordered by their last cluster; a "
    "pale cell is a client that waits for its cluster, a dot a client that trained."
)


def section(methods: Sequence[Method]) -> Section | None:
    """A map for each method that divides its clients, and a table of accuracies at the clients."""
    divided = [method for method in methods if _divided(method.runs[0])]
    panes = tabs([(method.label, _map(method.runs[0])) for method in divided[:_MOST]])
    body = panes + _accuracies(methods)
    more = f" The first {_MOST} of {len(divided)} methods." if len(divided) > _MOST else ""
    return Section("clusters", "Clusters", body, f"{_NOTE}{more}" if panes else "") if body else None


def _divided(run: Run) -> bool:
    return len(csv_table.frame(run.folder / "clusters.csv")) > 0


def _map(run: Run) -> str:
    events = csv_table.frame(run.folder / "clusters.csv")
    rounds = int(run.rounds[-1])
    clients = max(len(run.selections), 1 + max(events["client"].tolist()))
    found, rows = ordered(memberships(events, clients, rounds))
    kinds = np.where(found.waiting, -found.cluster, found.cluster)
    there = [int(one) for one in np.unique(found.cluster[found.cluster > 0])]
    seed = "" if run.seed is None else f", seed {run.seed}"
    heat = Heat(
        title=f"Clusters of the clients{seed}"
        + (f": {len(rows)} of {clients:,} clients" if len(rows) < clients else ""),
        horizontal="Round",
        vertical="Client",
        rows=[str(client) for client in rows],
        columns=[str(number) for number in range(rounds + 1)],
        values=np.where(found.cluster > 0, found.cluster, np.nan),
        told="cluster",
        kinds=kinds,
        below=swatches([f"cluster {one}" for one in there[:14]], [one - 1 for one in there[:14]]),
    )
    return draw(heat, _dots(found.trained, heat))


def ordered(found: Memberships) -> tuple[Memberships, list[int]]:
    """The clients by their last cluster, of very many evenly chosen ones, and who they are."""
    order = np.argsort(found.cluster[:, -1], kind="stable")
    if len(order) > _ROWS:
        order = order[np.rint(np.linspace(0, len(order) - 1, _ROWS)).astype(np.int64)]
    return Memberships(found.cluster[order], found.waiting[order], found.trained[order]), order.tolist()


def _dots(trained: np.ndarray, heat: Heat) -> str:
    """A dot for each cell in which a client trained: lines of no length with round ends."""
    took = np.argwhere(trained).tolist()
    place = layout(heat)
    if not took or len(took) > _DOTS or place.tall < 5 or place.wide < 5:
        return ""
    middles = (place.middle(row, column) for row, column in took)
    return f'<path class="took" d="{"".join(f"M{svg.one(x)} {svg.one(y)}h0" for x, y in middles)}"/>'


def _accuracies(methods: Sequence[Method]) -> str:
    rows = []
    for method in methods:
        tables = [own for run in method.runs if len(own := csv_table.frame(run.folder / "client_accuracy.csv"))]
        if tables:
            means = [statistic([_mean(own, model) for own in tables]).mean for model in _MODELS]
            rows.append([method.label, *("-" if mean is None else f"{mean:.4f}" for mean in means)])
    if not rows:
        return ""
    return table(Grid(("method", *_MODELS.values()), rows), "Accuracy on what the clients held out, mean over clients")


def _mean(own: object, model: str) -> float | None:
    import pandas as pd

    assert isinstance(own, pd.DataFrame)
    known = own[model].dropna() if model in own else []
    return float(np.mean(known)) if len(known) else None
