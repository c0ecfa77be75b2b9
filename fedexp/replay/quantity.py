"""The quantity a cell reads from a run: the last values' mean, an extreme, or the first round with an accuracy."""

import re
from dataclasses import dataclass

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.maths.curve_metrics import rounds_to
from fedexp.report.read.runs import Run

# How far the rounding of another machine may move a number: this much (two of 360 digits), or this share of one above
# 1; a count of rounds by one, or by this share of it, since a curve is often flat where it meets the threshold.
CROSS_MACHINE_TOLERANCE = 0.006
CROSS_MACHINE_ROUNDS = 0.05

_THRESHOLD = re.compile(r"roa@(\d+\.?\d*|\.\d+)")
_COLUMN = re.compile(
    r"(?P<column>[a-z_][\w.]*)( last (?P<last>[1-9]\d{0,5})| at (?P<at>[1-9]\d{0,5})| (?P<extreme>max|min))?"
)


@dataclass(frozen=True)
class CellQuantity:
    """The mean of a column's last known values, one or an extreme of them, or the first round at a threshold.

    `at` is the round whose value it is; `extreme` is max or min of all rounds, which is for comparing with sources that
    report it.
    """

    text: str
    column: str
    last: int = 1
    threshold: float | None = None
    at: int | None = None
    extreme: str | None = None

    @staticmethod
    def parse(text: str, where: str) -> "CellQuantity":
        """Reads `roa@0.97`, `test_accuracy`, or that with ` last 5`, ` at 2`, ` max` or ` min` behind it.

        Raises:
            ConfigError: it is none of these.
        """
        if (accuracy := _THRESHOLD.fullmatch(text)) and 0 < float(accuracy[1]) <= 1:
            return CellQuantity(text, "test_accuracy", threshold=float(accuracy[1]))
        match = _COLUMN.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"{where} must be roa@X with an accuracy X above 0 and up to 1, or a column of metrics.csv such as "
                f"test_accuracy, test_accuracy last 5, test_accuracy at 2 or test_accuracy max, got {text or 'none'}"
            )
        at = int(match["at"]) if match["at"] else None
        return CellQuantity(text, match["column"], int(match["last"] or 1), at=at, extreme=match["extreme"])

    @property
    def is_count(self) -> bool:
        """Whether it is a number of rounds."""
        return self.threshold is not None or self.column == "round"

    def agrees_across_machines(self, first: float, second: float) -> bool:
        """Whether two machines that compute the same run may give these two numbers."""
        larger = max(1.0, abs(first), abs(second))
        most = CROSS_MACHINE_TOLERANCE * larger if self.threshold is None else max(1.0, CROSS_MACHINE_ROUNDS * larger)
        return abs(first - second) <= most

    def of(self, run: Run) -> float | None:
        """Reads the number from a run; None where the run did not reach the threshold.

        Raises:
            ConfigError: the run has no value in the column.
        """
        values = run.column(self.column)
        numbers = values[~np.isnan(values)]
        if not len(numbers):
            raise ConfigError(f"{run.folder} has no value in the column {self.column} of metrics.csv")
        if self.threshold is not None:
            return rounds_to(values, self.threshold, run.rounds)
        if self.at is not None:
            numbers = values[self.at - 1 : self.at]
            if not len(numbers) or np.isnan(numbers[0]):
                raise ConfigError(f"{run.folder} has no value of {self.column} in round {self.at}")
        if self.extreme is not None:
            return float(numbers.max() if self.extreme == "max" else numbers.min())
        return float(numbers[-self.last :].mean())
