"""`--fail-if "final_accuracy < 0.8"` of `run` and `resume`: bounds on numbers of summary.json for which a run fails."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError, nearest_hint
from fedexp.files.atomic import display_path

SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISON = r"\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"  # a sign and a number
_FORM = re.compile(rf"\s*([^\s<>=]+){COMPARISON}")
_OF_METRIC = re.compile(r"(?:final|best)_(\w+)|(\w+)_auc")
_OTHERS = re.compile(r"(roa|toa)@(\d+\.?\d*|\.\d+)|rounds|updates|host_s|sim_s")
_EXAMPLES = ("final_accuracy", "best_accuracy", "accuracy_auc", "roa@0.9", "toa@0.9", "rounds", "updates", "host_s")


@dataclass(frozen=True)
class Bound:
    """A condition on one number of a summary; RoA and ToA are named `roa@0.9`."""

    name: str
    sign: str
    number: float

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.number:g}"

    def value(self, summary: Mapping[str, Any]) -> float | None:
        """The number in a summary; None if it has none."""
        name, at, _ = self.name.partition("@")
        value = self._times(summary).get(self.target) if at else summary.get(name)
        return float(value) if isinstance(value, int | float) else None

    @property
    def metric(self) -> str:
        """The metric that it bounds; empty for what is no metric, such as `rounds`."""
        match = _OF_METRIC.fullmatch(self.name)
        return (match[1] or match[2]) if match else ""

    @property
    def target(self) -> str:
        """What a bound on RoA or ToA asks to be reached, as summary.json writes it; else nothing."""
        text = self.name.partition("@")[2]
        return text and str(float(text))

    def was_missed(self, summary: Mapping[str, Any]) -> bool:
        """Whether the run never reached the value that RoA or ToA asks for."""
        times = self._times(summary)
        return self.target in times and times[self.target] is None

    def _times(self, summary: Mapping[str, Any]) -> Mapping[str, Any]:
        node = summary.get(self.name.partition("@")[0])
        return node if isinstance(node, Mapping) else {}


def parse(text: str) -> Bound:
    """Reads one condition; raises ConfigError if it is none."""
    match = _FORM.fullmatch(text)
    if not match or not (_OF_METRIC.fullmatch(match[1]) or _OTHERS.fullmatch(match[1])):
        nearest = nearest_hint(re.sub(r"^test_", "final_", match[1]), _EXAMPLES) if match else ""
        raise ConfigError(
            f'--fail-if must be "NAME SIGN NUMBER" with a number of summary.json (final_accuracy, best_accuracy, '
            f'accuracy_auc, roa@0.9, rounds, host_s, ...), e.g. "final_accuracy < 0.8", got {text!r}'
            + (f"; {nearest}" if nearest else "")
        )
    return Bound(match[1], match[2], float(match[3]))


def failures(bounds: Sequence[Bound], summaries: Mapping[Path, Mapping[str, Any]]) -> list[str]:
    """A line for every bound that holds for a run, given by its folder, or cannot be judged there."""
    lines = []
    for folder, summary in summaries.items():
        for bound in bounds:
            value, where = bound.value(summary), display_path(folder)
            if summary.get("skipped_rounds") and summary["skipped_rounds"] == summary.get("rounds"):
                why = "in all its rounds the model stayed as it was"
                lines.append(f"{bound} cannot be judged for {where}: {why}")
            elif bound.was_missed(summary):
                lines.append(f"{bound} cannot be judged for {where}: {bound.target} was never reached")
            elif value is None:
                names = ", ".join(key for key, number in summary.items() if isinstance(number, int | float))
                lines.append(f"{bound} cannot be judged for {where}: its summary has no {bound.name}, only {names}")
            elif SIGNS[bound.sign](value, bound.number):
                lines.append(f"{bound} holds for {where}, it is {value:.6g}")
    return [f"failed: {line}" for line in lines]
