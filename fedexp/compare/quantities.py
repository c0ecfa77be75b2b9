"""The quantities by which methods are compared, each with its direction, and how their names are read."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.core.errors import ConfigError, nearest
from fedexp.maths.metrics import area_under, final, rounds_to, time_to
from fedexp.report.runs import Run

PLAIN = ("test_accuracy", "accuracy_auc", "loss_auc")
REACHED = ("roa", "toa")
ALLOWED = "test_accuracy, accuracy_auc, loss_auc, roa@X, toa@X (X: an accuracy, e.g. roa@0.9)"


@dataclass(frozen=True)
class Quantity:
    """A number of a run: `more` says whether larger is better, `reached` whether a run may lack it."""

    name: str
    more: bool
    of: Callable[[Run], float | None]
    reached: bool = False

    @property
    def better(self) -> str:
        return "more" if self.more else "fewer" if self.reached else "less"


def parse(text: str, clock: str) -> Quantity:
    """The quantity with this name; `clock` is the column of seconds that ToA uses.

    Raises:
        ConfigError: there is no such quantity.
    """
    name, at, threshold = text.strip().partition("@")
    if not at and name in PLAIN:
        return _PLAIN[name]
    if name not in REACHED or not re.fullmatch(r"0?\.\d+|0|1|1\.0*", threshold):
        guess = f"{nearest(name, PLAIN)} " if not at and name not in REACHED else ""
        raise ConfigError(f"a quantity must be one of {ALLOWED}, got {text.strip() or 'none'}; {guess}see --help")
    return reach(name, float(threshold), clock)


def reach(name: str, threshold: float, clock: str) -> Quantity:
    """RoA or ToA at a threshold."""

    def rounds(run: Run) -> float | None:
        return rounds_to(run.column("test_accuracy"), threshold, run.rounds)

    def seconds(run: Run) -> float | None:
        return time_to(run.column("test_accuracy"), run.column(clock), threshold)

    return Quantity(f"{name}@{threshold:g}", more=False, of=rounds if name == "roa" else seconds, reached=True)


def default(runs: Sequence[Run], clock: str | None) -> list[Quantity]:
    """Final accuracy, both areas, and RoA and ToA at the highest accuracy that at least half of all runs reach.

    The choice does not depend on which side reached it, so it favours neither. ToA is included only with a simulated
    clock: the host's times vary from day to day, so equal methods would seem to differ.
    """
    chosen = [_PLAIN[name] for name in PLAIN]
    listed = {x for run in runs for x in run.config.get("evaluation.roa") or () if isinstance(x, int | float)}
    often = [x for x in sorted(listed) if sum(_best(run) >= x for run in runs) * 2 >= len(runs)]
    if often:
        chosen.append(reach("roa", often[-1], ""))
        chosen += [reach("toa", often[-1], clock)] if clock == "sim_s" else []
    return chosen


def clock_of(runs: Sequence[Run]) -> str | None:
    """The column of seconds that all runs share: simulated, else the host's; None if only some simulate."""
    timed = {run.timed for run in runs}
    return None if len(timed) > 1 else "sim_s" if timed == {True} else "host_s"


def _best(run: Run) -> float:
    accuracy = run.column("test_accuracy")
    return float(np.nanmax(accuracy)) if np.isfinite(accuracy).any() else -np.inf


_PLAIN = {
    "test_accuracy": Quantity("test_accuracy", more=True, of=lambda run: final(run.column("test_accuracy"))),
    "accuracy_auc": Quantity("accuracy_auc", more=True, of=lambda run: area_under(run.column("test_accuracy"))),
    "loss_auc": Quantity("loss_auc", more=False, of=lambda run: area_under(run.column("test_loss"))),
}
