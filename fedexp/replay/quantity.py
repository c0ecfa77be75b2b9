"""The quantity a cell reads from a run: the last values' mean, the highest, or the first round with an accuracy."""

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

_FORM = re.compile(
    r"roa@(?P<threshold>\d+\.?\d*|\.\d+)|(?P<column>[a-z_][\w.]*)( last (?P<last>[1-9]\d{0,5})| (?P<max>max))?"
)


@dataclass(frozen=True)
class CellQuantity:
    """The mean of the last known values of a column of metrics.csv, the highest, or the first round at a threshold."""

    text: str
    column: str
    last: int = 1
    threshold: float | None = None
    highest: bool = False  # of all rounds, as some sources report it: for comparing with them alone

    @staticmethod
    def parse(text: str, where: str) -> "CellQuantity":
        """Reads `roa@0.97`, `test_accuracy`, `test_accuracy last 5`, or `test_accuracy max`.

        Raises:
            ConfigError: it is none of these.
        """
        match = _FORM.fullmatch(text)
        if match is None or (match["threshold"] and not 0 < float(match["threshold"]) <= 1):
            raise ConfigError(
                f"{where} must be roa@X with an accuracy X above 0 and up to 1, or a column of metrics.csv such as "
                f"test_accuracy, test_accuracy last 5 or test_accuracy max, got {text or 'none'}"
            )
        if match["threshold"]:
            return CellQuantity(text, "test_accuracy", threshold=float(match["threshold"]))
        return CellQuantity(text, match["column"], int(match["last"] or 1), highest=bool(match["max"]))

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
        return float(numbers.max() if self.highest else numbers[-self.last :].mean())
