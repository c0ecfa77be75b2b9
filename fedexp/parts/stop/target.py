"""Ends a run when the main metric reaches a target, on validation data (or on test data, to count)."""

from typing import Annotated

from fedexp.parts import SHARES, Columns, ConfigError, Memory, Range, Stop, higher_is_better, main_metric

DEFAULT_GOAL = 0.95


class Target(Stop):
    """A value of the main metric to reach: of one from 0 to 1, 0.95 unless it is given."""

    value: Annotated[float, Range()] | None = None

    data = "validation"  # by which it is judged
    needs_validation = True

    def refuse(self, metric: str) -> None:
        if metric not in SHARES and self.value is None:
            raise ConfigError(f"stop.value must be given where the main metric is {metric}: set the value to reach")
        if metric in SHARES and not 0 <= self.goal <= 1:
            raise ConfigError(f"stop.value must be a value of {metric}, from 0 to 1, got {self.goal:g}")

    @property
    def goal(self) -> float:
        """The value to reach."""
        return DEFAULT_GOAL if self.value is None else self.value

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        metric = main_metric(row, self.data)
        value = row[f"{self.data}_{metric}"]
        assert value is not None
        done = value >= self.goal if higher_is_better(metric) else value <= self.goal
        return (f"{self.data} {metric} {value:.4f} reached {self.goal:g}" if done else None), memory
