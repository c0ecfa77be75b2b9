"""The quantities by which methods are compared, each with its direction, and how their names are read."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.maths.curve_metrics import (
    HIGHER_IS_BETTER,
    SHARES,
    best,
    higher_is_better,
    is_number_name,
    rounds_to,
    time_to,
)
from fedexp.report.read import at_clients
from fedexp.report.read.runs import Run, shared_metric

CLIENT_NAMES = tuple(dict.fromkeys(name for metric in HIGHER_IS_BETTER for name in at_clients.names(metric)))
THRESHOLD_NAMES = ("roa", "toa")
ALLOWED = (
    "test_accuracy, accuracy_auc (or of another metric, e.g. test_rmse), loss_auc, roa@X, toa@X (X: a value of the "
    "main metric, e.g. roa@0.9), personal_accuracy, personal_worst_decile, personal_best_decile, or site_ instead of "
    "personal_"
)


@dataclass(frozen=True)
class Quantity:
    """A number of a run; `higher_is_better` says whether more is better, `may_be_missing` whether a run may lack it."""

    name: str
    higher_is_better: bool
    of: Callable[[Run], float | None]
    may_be_missing: bool = False
    is_share: bool = False  # whether it goes from 0 to 1
    at_clients: bool = False  # whether it is measured on what clients hold

    @property
    def better(self) -> str:
        return "more" if self.higher_is_better else "fewer" if self.may_be_missing else "less"


def metric_names(runs: Sequence[Run]) -> list[str]:
    """The quantities that are the end of a metric's course or an area: of built-in metrics, and those of the runs."""
    columns = [str(name) for run in runs for name in run.metrics if str(name).startswith("test_")]
    metrics = [*HIGHER_IS_BETTER, *filter(is_number_name, (name.removeprefix("test_") for name in columns))]
    return ["loss_auc", *dict.fromkeys(name for metric in metrics for name in (f"test_{metric}", f"{metric}_auc"))]


def parse(text: str, clock: str, runs: Sequence[Run] = ()) -> Quantity:
    """The quantity with this name; `clock` is the column of seconds that ToA uses, `runs` may have metrics of a user.

    Raises:
        ConfigError: there is no such quantity.
    """
    name, at, threshold = text.strip().partition("@")
    names = metric_names(runs)
    if not at and name in names:
        return metric_quantity(name)
    metric = shared_metric(runs) if runs else "accuracy"
    if not at and name in (*CLIENT_NAMES, *at_clients.names(metric)):
        return client_quantity(name, metric)
    if name not in THRESHOLD_NAMES or not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", threshold):
        guess = guess_quantity(name, (*names, *CLIENT_NAMES)) if not at and name not in THRESHOLD_NAMES else ""
        raise ConfigError(f"a quantity must be one of {ALLOWED}, got {text.strip() or 'none'}; {guess}see --help")
    return threshold_quantity(name, float(threshold), clock)


def guess_quantity(name: str, names: Sequence[str]) -> str:
    """What may be meant by a name, with the space behind it: a metric on test data before other quantities."""
    if longer := [candidate for candidate in names if name and candidate.startswith((f"test_{name}", name))]:
        return f"did you mean {' or '.join(longer[:3])}? "
    guess = did_you_mean(name, names)
    return f"{guess} " if guess.endswith("?") else f"{guess}; "


def threshold_quantity(name: str, threshold: float, clock: str) -> Quantity:
    """RoA or ToA at a threshold of each run's main metric."""

    def rounds(run: Run) -> float | None:
        return rounds_to(run.column(f"test_{run.metric}"), threshold, run.rounds, higher_is_better(run.metric))

    def seconds(run: Run) -> float | None:
        values, higher = run.column(f"test_{run.metric}"), higher_is_better(run.metric)
        return time_to(values, run.column(clock), threshold, higher)

    return Quantity(
        f"{name}@{threshold:g}", higher_is_better=False, of=rounds if name == "roa" else seconds, may_be_missing=True
    )


def default_quantities(runs: Sequence[Run], clock: str | None) -> list[Quantity]:
    """Final main metric, both areas, and RoA and ToA at its best listed value that at least half of all runs reach.

    The choice does not depend on which side reached it, so it favours neither. ToA is included only with a simulated
    clock: the host's times vary from day to day, so equal methods would seem to differ.
    """
    metric = shared_metric(runs)
    chosen = [metric_quantity(name) for name in (f"test_{metric}", f"{metric}_auc", "loss_auc")]
    listed = {x for run in runs for x in run.thresholds("roa")}
    ends = [best(run.column(f"test_{metric}"), higher_is_better(metric)) for run in runs]
    sign = 1 if higher_is_better(metric) else -1
    reached = {x: sum(end is not None and sign * end >= sign * x for end in ends) for x in listed}
    often = sorted((x for x, count in reached.items() if count * 2 >= len(runs)), key=lambda x: sign * x)
    if often:
        chosen.append(threshold_quantity("roa", often[-1], ""))
        chosen += [threshold_quantity("toa", often[-1], clock)] if clock == "sim_s" else []
    return chosen


def clock_of(runs: Sequence[Run]) -> str | None:
    """The column of seconds that all runs share: simulated, else the host's; None if only some simulate."""
    timed = {run.has_simulated_clock for run in runs}
    return None if len(timed) > 1 else "sim_s" if timed == {True} else "host_s"


def metric_quantity(name: str) -> Quantity:
    """The end of a metric's course, or the area under it or the loss."""
    if name == "loss_auc":
        return Quantity(name, higher_is_better=False, of=lambda run: run.area("test_loss"))
    is_end = name.startswith("test_")
    metric = name.removeprefix("test_") if is_end else name.removesuffix("_auc")
    column = f"test_{metric}"
    return Quantity(
        name,
        higher_is_better(metric),
        lambda run: run.final(column) if is_end else run.area(column),
        is_share=is_end and metric in SHARES,
    )


def client_quantity(name: str, metric: str) -> Quantity:
    """A measure of the models at the clients; `metric` is the runs' main one, which tells which tenth is best."""
    metric = next((metric_name for metric_name in HIGHER_IS_BETTER if name.endswith(f"_{metric_name}")), metric)
    return Quantity(
        name, higher_is_better(metric), lambda run: at_clients.measure(run, name), is_share=metric in SHARES,
        at_clients=True,
    )  # fmt: skip
