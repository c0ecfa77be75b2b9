"""The numbers of a run that the tables compare, from its metrics alone, so that unfinished runs have them too."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.maths.curve_metrics import (
    RECALL,
    best,
    higher_is_better,
    is_number_name,
    rounds_to,
    time_to,
)
from fedexp.maths.significance import student_quantile
from fedexp.report.read import at_clients, epsilon
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run

_MOST_RECALLS = 10  # of classes in a table
Numbers = dict[str, float | None]


@dataclass(frozen=True)
class Statistic:
    """Mean and sample standard deviation over the runs that have the number; `std` is None below two of them."""

    mean: float | None
    std: float | None
    count: int
    runs: int


def statistic(values: Sequence[float | None]) -> Statistic:
    """Returns mean and standard deviation of one number over several runs."""
    numbers = np.array([value for value in values if value is not None], dtype=np.float64)
    return Statistic(
        mean=float(numbers.mean()) if len(numbers) else None,
        std=float(numbers.std(ddof=1)) if len(numbers) > 1 and np.isfinite(numbers).all() else None,
        count=len(numbers),
        runs=len(values),
    )


def half_interval(value: Statistic) -> float | None:
    """Half the width of Student's 95 % interval of the mean; None where there is no deviation."""
    return None if value.std is None else student_quantile(value.count - 1) * value.std / math.sqrt(value.count)


def host_numbers(run: Run, metric: str, roa: Iterable[float], toa: Iterable[float]) -> Numbers:
    """How good, how fast in rounds, and how long on this computer; ToA in its seconds for the thresholds `toa`."""
    values, higher = run.column(f"test_{metric}"), higher_is_better(metric)
    reached = {f"RoA@{x:g}": rounds_to(values, x, run.rounds, higher) for x in roa}
    times = {f"ToA@{x:g} host s": time_to(values, run.column("host_s"), x, higher) for x in toa}
    return {
        f"final {metric}": run.final(f"test_{metric}"),
        f"best {metric}": best(values, higher),
        "epsilon (PLD)": run.final(epsilon.COLUMN),
        "loss AUC": run.area("test_loss"),
        **reached,
        **times,
        "selections": total(run.column("participants")),
        "rounds": int(run.rounds[-1]),
        "host s/round": mean_per_round(run, "host_s"),
    }


def further_numbers(run: Run, metrics: Iterable[str]) -> Numbers:
    """The last values of further metrics on the test data."""
    return {f"final {metric}": run.final(f"test_{metric}") for metric in metrics}


def further_metrics(runs: Iterable[Run], metric: str) -> list[str]:
    """The metrics beside the main one that any of the runs has on the test data, in the order of their columns.

    The recalls of many classes are not among them.
    """
    columns = dict.fromkeys(str(column) for run in runs for column in run.metrics)
    names = [column.removeprefix("test_") for column in columns if column.startswith("test_")]
    hidden = sum(name.startswith(RECALL) for name in names) > _MOST_RECALLS
    return [
        name for name in names if is_number_name(name) and name != metric and not (hidden and name.startswith(RECALL))
    ]


def simulated_numbers(run: Run, metric: str, toa: Iterable[float]) -> Numbers:
    """How fast by the simulated clock, whose seconds count up over the rounds."""
    values, selections = run.column(f"test_{metric}"), total(run.column("participants"))
    seconds, higher = run.column("sim_s"), higher_is_better(metric)
    times = {f"ToA@{x:g} sim s": time_to(values, seconds, x, higher) for x in toa}
    return {
        **times,
        "sim s/round": mean_per_round(run, "sim_s"),
        "participants/round": None if selections is None else selections / len(run.rounds),
        "rounds": int(run.rounds[-1]),
        "selections": selections,
        f"final {metric}": run.final(f"test_{metric}"),
    }


def client_numbers(run: Run, metric: str) -> Numbers:
    """How good the models are at the clients: the clients' own ones, and the global one."""
    labels = {metric: metric, "worst_decile": f"worst-tenth {metric}", "best_decile": f"best-tenth {metric}"}
    return {
        f"{model} {label}": at_clients.measure(run, f"{model}_{name}")
        for model in at_clients.MODELS
        for name, label in labels.items()
    }


def thresholds(methods: Sequence[Method], key: str) -> list[float]:
    """The values that `evaluation.roa` or `evaluation.toa` (`key`) name in any of the runs."""
    return sorted({x for method in methods for run in method.runs for x in run.thresholds(key)})


def total(values: np.ndarray) -> float | None:
    """The sum of the known `values [n]`; None if there are none."""
    finite = values[~np.isnan(values)]
    return float(finite.sum()) if len(finite) else None


def mean_per_round(run: Run, column: str) -> float | None:
    """The mean increase of a cumulative column in a round."""
    last = run.final(column)
    return None if last is None else last / int(run.rounds[-1])
