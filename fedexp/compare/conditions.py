"""`--fail-if "test_accuracy < -0.01"`: conditions on the mean difference A - B, or on a bound of its interval."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.compare import quantities
from fedexp.compare.pairing import MethodPair
from fedexp.compare.statistics import PairedStatistics
from fedexp.compare.study import compare_pairs, why_missing
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.summary_bounds import COMPARISON, SIGNS
from fedexp.report.read.runs import Run

_FORM = re.compile(rf"\s*(\S+?)(\.low|\.high)?{COMPARISON}")


@dataclass(frozen=True)
class Condition:
    """A condition under which a comparison fails."""

    quantity: str
    bound: str  # difference, low or high
    sign: str
    number: float

    def __str__(self) -> str:
        bound = "" if self.bound == "difference" else f".{self.bound}"
        return f"{self.quantity}{bound} {self.sign} {self.number:g}"


def parse(text: str, runs: Sequence[Run] = ()) -> Condition:
    """Reads one condition; `runs` may have metrics of a user.

    Raises:
        ConfigError: it is not a condition, or its quantity does not exist.
    """
    match = _FORM.fullmatch(text)
    if not match:
        raise ConfigError(
            f'--fail-if must be "QUANTITY[.low|.high] SIGN NUMBER" with a sign of {", ".join(SIGNS)}, '
            f'e.g. "test_accuracy < -0.01", got {text!r}; quantities: {quantities.ALLOWED}'
        )
    name, bound, sign, number = match.groups()
    return Condition(quantities.parse(name, "", runs).name, (bound or ".difference")[1:], sign, float(number))


def failures(conditions: Sequence[Condition], method_pairs: Sequence[MethodPair]) -> list[str]:
    """A line for every condition that holds in a pair of methods or cannot be judged: no check passes unnoticed."""
    lines = [_failure(condition, method_pair) for method_pair in method_pairs for condition in conditions]
    return [f"failed: {line}" for line in lines if line]


def _failure(condition: Condition, method_pair: MethodPair) -> str:
    sides = f"{method_pair.a} (A) - {method_pair.b} (B)"
    if failed := [display_path(run.folder) for run in method_pair.runs if run.has_failed]:
        return f"{condition} cannot be judged for {sides}: no update of any round was finite in {', '.join(failed)}"
    clock = quantities.clock_of(method_pair.runs)
    quantity = quantities.parse(condition.quantity, clock or "", method_pair.runs)
    lacking = why_missing(quantity, [method_pair], clock)
    if lacking:
        return f"{condition} cannot be judged for {sides}: {lacking}"
    result = compare_pairs(method_pair, quantity)
    value = _value(result, condition.bound)
    reached = f"only A reached it in {result.only_a}, only B in {result.only_b}, neither in {result.neither}"
    if value is None:
        nobody = not (result.only_a or result.only_b or result.neither)
        reason = f"{result.pairs} pair(s) have no interval" if nobody else f"of {result.pairs} pair(s) {reached}"
        return f"{condition} cannot be judged for {sides}: {reason}"
    if not SIGNS[condition.sign](value, condition.number):
        return ""
    evidence = f"it is {value:+.6g}" if math.isfinite(value) else reached
    return f"{condition} holds, {evidence} for {sides} over {result.pairs} pair(s)"


def _value(result: PairedStatistics, bound: str) -> float | None:
    """The difference, or a bound of its interval; infinite if only one side reached the accuracy."""
    if not result.only_a and not result.only_b:
        return getattr(result, bound)
    if bound != "difference" or (result.only_a and result.only_b):
        return None
    return math.inf if result.only_b else -math.inf
