"""`--fail-if "final_accuracy < 0.8"` of `run` and `resume`: bounds on numbers of summary.json for which a run fails."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path

SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISON = r"\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"  # a sign and a number
_FORM = re.compile(rf"\s*([^\s<>=]+){COMPARISON}")
_NAMES = re.compile(r"(final|best)_\w+|\w+_auc|(roa|toa)@\S+|rounds|updates|host_s|sim_s")


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
        name, at, threshold = self.name.partition("@")
        node = summary.get(name) or {}
        value = node.get(threshold) if at and isinstance(node, Mapping) else summary.get(name)
        return float(value) if isinstance(value, int | float) else None


def parse(text: str) -> Bound:
    """Reads one condition; raises ConfigError if it is none."""
    match = _FORM.fullmatch(text)
    if not match or not _NAMES.fullmatch(match[1]):
        raise ConfigError(
            f'--fail-if must be "NAME SIGN NUMBER" with a number of summary.json (final_accuracy, best_accuracy, '
            f'accuracy_auc, roa@0.9, rounds, host_s, ...), e.g. "final_accuracy < 0.8", got {text!r}'
        )
    return Bound(match[1], match[2], float(match[3]))


def failures(bounds: Sequence[Bound], summaries: Mapping[Path, Mapping[str, Any]]) -> list[str]:
    """A line for every bound that holds for a run, given by its folder, or cannot be judged there."""
    lines = []
    for folder, summary in summaries.items():
        for bound in bounds:
            value = bound.value(summary)
            if summary.get("skipped_rounds") and summary["skipped_rounds"] == summary.get("rounds"):
                why = "in all its rounds the model stayed as it was"
                lines.append(f"{bound} cannot be judged for {display_path(folder)}: {why}")
            elif value is None:
                names = ", ".join(key for key, number in summary.items() if isinstance(number, int | float))
                where = display_path(folder)
                lines.append(f"{bound} cannot be judged for {where}: its summary has no {bound.name}, only {names}")
            elif SIGNS[bound.sign](value, bound.number):
                lines.append(f"{bound} holds for {display_path(folder)}, it is {value:.6g}")
    return [f"failed: {line}" for line in lines]
