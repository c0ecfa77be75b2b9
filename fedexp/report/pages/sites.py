"""Every site by its name, and how each method does there, where the clients of all runs bear the same names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.files import run_tables
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Section
from fedexp.report.read.measures import Statistic, statistic
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import shared_metric
from fedexp.report.read.site_names import names_by_client
from fedexp.report.topics.tables import ROUNDING, cell_text, decimals

if TYPE_CHECKING:
    import pandas as pd

_MOST_SITES = 100
_NOTE = (
    "After the last round, on what each site held out or its own test examples, of the model that the site uses: its "
    "own if it has one, else the global one. Mean ± sample standard deviation over the seeds; bold: the best mean of a "
    "site among methods that have a score in all seeds. (k/n): only in k of n runs the site has a score, which it has "
    "not where the metric is undefined, such as an AUROC of one class."
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """A line for each site and a column for each method; None without names, or where they differ between runs."""
    metric = shared_metric([run for method in methods for run in method.runs])
    scores = [[site_scores(run.folder, metric) for run in method.runs] for method in methods]
    sites = list(scores[0][0])
    if not 0 < len(sites) <= _MOST_SITES or any(list(run) != sites for runs in scores for run in runs):
        return None
    values = [[statistic([run[site] for run in runs]) for runs in scores] for site in sites]
    digits = decimals(f"final {metric}")
    rows = [[site, *(cell_text(value, digits) for value in line)] for site, line in zip(sites, values, strict=True)]
    means = np.array([[_complete_mean(value) for value in line] for line in values])
    grid = Grid(("site", *(method.label for method in methods)), rows, bold=_best(means, higher_is_better(metric)))
    title = f"{metric.capitalize()} at each site"
    return Section(name="sites", title=title, note=_NOTE, tables=[(title, grid)], as_files=True)


def site_scores(folder: Path, metric: str) -> dict[str, float | None]:
    """The score of the model that each site uses, by the site's name; empty without names, or where two share one."""
    path = folder / "client_scores.csv"
    table, names = run_tables.read_frame(path, ("client", "metric", "global")), names_by_client(path)
    if not len(table) or set(table["metric"].tolist()) != {metric} or len(set(names.values())) < len(table):
        return {}
    scores = _column(table, "personal")
    scores = np.where(np.isnan(scores), _column(table, "global"), scores)
    return {
        names[client]: float(score) if np.isfinite(score) else None
        for client, score in zip(table["client"].tolist(), scores, strict=True)
    }


def _complete_mean(value: Statistic) -> float:
    return np.nan if value.mean is None or value.count < value.runs else value.mean


def _column(table: "pd.DataFrame", name: str) -> np.ndarray:
    return table[name].to_numpy(dtype=np.float64) if name in table else np.full(len(table), np.nan)


def _best(means: np.ndarray, higher: bool) -> frozenset[tuple[int, int]]:
    """The cells (row, column of the grid) with the best of `means [sites, methods]` where these differ."""
    signed = means if higher else -means
    return frozenset(
        (row, int(column) + 1)
        for row, line in enumerate(signed)
        if np.isfinite(line).sum() > 1 and not np.isclose(np.nanmin(line), np.nanmax(line), rtol=ROUNDING, atol=0)
        for column in np.flatnonzero(np.isclose(line, np.nanmax(line), rtol=ROUNDING, atol=0))
    )
