"""The quantities by which methods are compared, each with its direction, and how their names are read."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.maths.curve_metrics import HIGHER_IS_BETTER, SHARES, area_under, best, final, rounds_to, time_to
from fedexp.report.read import at_clients
from fedexp.report.read.runs import Run, shared_metric

METRIC_NAMES = ("loss_auc", *(name for metric in HIGHER_IS_BETTER for name in (f"test_{metric}", f"{metric}_auc")))
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


def parse(text: str, clock: str, metric: str = "accuracy") -> Quantity:
    """The quantity with this name; `clock` is the column of seconds that ToA uses, `metric` the runs' main one.

    Raises:
        ConfigError: there is no such quantity.
    """
    name, at, threshold = text.strip().partition("@")
    if not at and name in METRIC_NAMES:
        return metric_quantity(name)
    if not at and name in CLIENT_NAMES:
        return client_quantity(name, metric)
    if name not in THRESHOLD_NAMES or not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", threshold):
        guess = (
            f"{did_you_mean(name, (*METRIC_NAMES, *CLIENT_NAMES))} " if not at and name not in THRESHOLD_NAMES else ""
        )
        raise ConfigError(f"a quantity must be one of {ALLOWED}, got {text.strip() or 'none'}; {guess}see --help")
    return threshold_quantity(name, float(threshold), clock)


def threshold_quantity(name: str, threshold: float, clock: str) -> Quantity:
    """RoA or ToA at a threshold of each run's main metric."""

    def rounds(run: Run) -> float | None:
        return rounds_to(run.column(f"test_{run.metric}"), threshold, run.rounds, HIGHER_IS_BETTER[run.metric])

    def seconds(run: Run) -> float | None:
        values, higher = run.column(f"test_{run.metric}"), HIGHER_IS_BETTER[run.metric]
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
    ends = [best(run.column(f"test_{metric}"), HIGHER_IS_BETTER[metric]) for run in runs]
    sign = 1 if HIGHER_IS_BETTER[metric] else -1
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
        return Quantity(name, higher_is_better=False, of=lambda run: area_under(run.column("test_loss")))
    metric = name.removeprefix("test_").removesuffix("_auc")
    ends = name.startswith("test_")
    end = final if ends else area_under
    return Quantity(
        name,
        HIGHER_IS_BETTER[metric],
        lambda run: end(run.column(f"test_{metric}")),
        is_share=ends and metric in SHARES,
    )


def client_quantity(name: str, metric: str) -> Quantity:
    """A measure of the models at the clients; `metric` is the runs' main one, which tells which tenth is best."""
    metric = next((metric_name for metric_name in HIGHER_IS_BETTER if name.endswith(f"_{metric_name}")), metric)
    return Quantity(
        name, HIGHER_IS_BETTER[metric], lambda run: at_clients.measure(run, name), is_share=metric in SHARES,
        at_clients=True,
    )  # fmt: skip
