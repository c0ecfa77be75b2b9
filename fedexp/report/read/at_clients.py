"""How a run's models do at its clients: the mean over clients, and their worst and best tenths.

Names begin with `personal_` for the model that each client uses, as the last evaluated round of metrics.csv tells, and
with `site_` for the global model on the same examples, from client_scores.csv; clients that never train are left out
of both. Where every client trains alone there is no global model, and no `site_`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fedexp.files import run_tables
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.maths.spread import best_tenth, worst_tenth
from fedexp.report.read.runs import Run
from fedexp.report.read.site_names import names_by_client

if TYPE_CHECKING:
    import pandas as pd

MODELS = ("personal", "site")
SPREADS = {"worst_decile": worst_tenth, "best_decile": best_tenth}


def names(metric: str) -> Iterator[str]:
    """All measures of runs with this main metric."""
    return (f"{model}_{name}" for model in MODELS for name in (metric, *SPREADS))


def measure(run: Run, name: str) -> float | None:
    """The number with this name; None where the run does not have it."""
    model, _, statistic = name.partition("_")
    if model == "personal":
        return run.final(name)
    values = site_values(run)
    if not len(values) or statistic not in (run.metric, *SPREADS):
        return None
    spread = SPREADS.get(statistic)
    return float(values.mean()) if spread is None else spread(values, higher_is_better(run.metric))


def site_scores(run: Run) -> dict[str, float | None]:
    """The score of the model that each site uses after the last round, by the site's name.

    Empty without names, where two share one, or where the scores are of another metric than the run's main one.
    """
    path = run.folder / "client_scores.csv"
    table, names = _scores(run), names_by_client(path)
    if not len(table) or len(set(names.values())) < len(table):
        return {}
    scores = np.asarray(table["global"], float)
    if "personal" in table:
        scores = np.where(table["personal"].isna(), scores, table["personal"])
    return {
        names[client]: float(score) if np.isfinite(score) else None
        for client, score in zip(table["client"].tolist(), scores, strict=True)
    }


def site_values(run: Run) -> np.ndarray:
    """The final global model's main metric at each client that trains, `[n]`; none where it is not known."""
    table = _scores(run)
    if not len(table):
        return np.zeros(0)
    values = table["global"].to_numpy(dtype=np.float64)
    trains = table["unseen"].to_numpy() != 1 if "unseen" in table else np.ones(len(table), dtype=bool)
    return values[trains & ~np.isnan(values)]


def _scores(run: Run) -> "pd.DataFrame":
    """client_scores.csv; no lines where its scores are of another metric than the run's main one."""
    table = run_tables.read_frame(run.folder / "client_scores.csv", ("client", "metric", "global"))
    return table if len(table) and set(table["metric"].tolist()) == {run.metric} else table.iloc[:0]
