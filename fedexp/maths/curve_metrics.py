"""Summary numbers of a run, computed from the columns of its metrics.

A column has one entry for each round; NaN or None marks a round that was not evaluated. A number that does not exist is
None. RoA is the first round in which the main metric is x or better, ToA the cumulative time until then.
"""

from collections.abc import Iterable

import numpy as np

RATES = ("sensitivity", "specificity", "precision", "auroc", "auprc")
SHARES = ("accuracy", "top5", "macro_f1", "balanced_accuracy", *RATES)  # those from 0 to 1, the higher the better
HIGHER_IS_BETTER = {
    **dict.fromkeys((*SHARES, "r2"), True),
    **dict.fromkeys(("perplexity", "mae", "rmse", "brier", "ece"), False),
}  # the built-in metrics that are one number
MULTI_VALUED = ("class_recall", "confusion_matrix")  # those that are more than one number
RECALL = "recall."  # what the columns of `class_recall` begin with, before the class
DEFAULT_THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)  # of a share, where none are asked for


def metric_name(entry: str) -> str:
    """The name in tables of an entry of `evaluation.metrics`: its own, or that of the function of `module:function`."""
    return entry.rpartition(":")[2]


def is_metric_name(name: str) -> bool:
    """Whether a metric that is one number may have this name in a table: a built-in one, or a function of the user."""
    return name.isidentifier() and name not in ("loss", *MULTI_VALUED)


def is_number_name(name: str) -> bool:
    """Whether this may be one number's name in a table: a metric's, or that of the recall of a class."""
    return name.startswith(RECALL) or is_metric_name(name)


def higher_is_better(name: str) -> bool:
    """Whether more of a metric is better, as it is of every function of the user; of the loss less is."""
    return HIGHER_IS_BETTER.get(name, name != "loss")


def main_metric(columns: Iterable[str], kind: str = "test") -> str:
    """The main metric of a run with such columns, which is the first of them on `kind` data; accuracy if none is."""
    names = (str(column).removeprefix(f"{kind}_") for column in columns if str(column).startswith(f"{kind}_"))
    return next((name for name in names if is_metric_name(name)), "accuracy")


def thresholds(requested: Iterable[float] | None, metric: str) -> tuple[float, ...]:
    """The thresholds of RoA and ToA: those requested, or default ones of a metric from 0 to 1.

    The area under the ROC curve begins at 0.5, which is no target.
    """
    if requested is not None:
        return tuple(requested)
    defaults = DEFAULT_THRESHOLDS if metric in SHARES else ()
    return tuple(x for x in defaults if metric != "auroc" or x > 0.5)


def area_under(values: Iterable[float | None]) -> float | None:
    """Trapezoid rule with one round as the unit, from the first to the last evaluated round.

    Rounds that were not evaluated are bridged by a straight line. None with fewer than two evaluated rounds: an unknown
    area is not a small one.
    """
    curve = _as_array(values)
    rounds = np.flatnonzero(~np.isnan(curve))
    if len(rounds) < 2:
        return None
    heights = curve[rounds]
    return float((np.diff(rounds) * (heights[1:] + heights[:-1])).sum() / 2)


def area_to_end(values: Iterable[float | None]) -> float | None:
    """The area under a finished curve; None too where its last value does not exist, as where it is infinite.

    Without its worst value the area would be too good.
    """
    curve = _as_array(values)
    return None if last(curve) is None else area_under(curve)


def rounds_to(
    values: Iterable[float | None], threshold: float, rounds: Iterable[int], higher: bool = True
) -> int | None:
    """The round (as the column `rounds` counts, from 1) in which `values` are first at the threshold or better."""
    first = _first_reached(values, threshold, higher)
    return None if first is None else int(list(rounds)[first])


def time_to(
    values: Iterable[float | None], seconds_cumulative: Iterable[float | None], threshold: float, higher: bool = True
) -> float | None:
    """The cumulative seconds at the end of the round in which `values` are first at the threshold or better."""
    first = _first_reached(values, threshold, higher)
    seconds = _as_array(seconds_cumulative)
    return None if first is None or np.isnan(seconds[first]) else float(seconds[first])


def best(values: Iterable[float | None], higher: bool = True) -> float | None:
    """The largest value, or the smallest if it is better."""
    present = _drop_missing(values)
    return float(present.max() if higher else present.min()) if len(present) else None


def final(values: Iterable[float | None]) -> float | None:
    """The last value that exists."""
    present = _drop_missing(values)
    return float(present[-1]) if len(present) else None


def last(values: Iterable[float | None]) -> float | None:
    """The last value; None if it does not exist."""
    return final(_as_array(values)[-1:])


def _first_reached(values: Iterable[float | None], threshold: float, higher: bool) -> int | None:
    column = _as_array(values)
    reached = np.flatnonzero(column >= threshold if higher else column <= threshold)
    return int(reached[0]) if len(reached) else None


def _drop_missing(values: Iterable[float | None]) -> np.ndarray:
    column = _as_array(values)
    return column[~np.isnan(column)]


def _as_array(values: Iterable[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
