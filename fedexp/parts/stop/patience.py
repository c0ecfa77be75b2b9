"""Ends a run when loss or metric on validation data have not improved for some rounds (early stopping)."""

import math
from typing import Annotated, Literal

from fedexp.parts import Columns, Memory, Range, Stop, higher_is_better, main_metric


class Patience(Stop):
    """`rounds` without an improvement of the best validation loss (or main metric) by more than `min_delta`."""

    rounds: Annotated[int, Range(1)] = 10
    min_delta: Annotated[float, Range(0)] = 0.0
    of: Literal["loss", "metric"] = "loss"

    needs_validation = True

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        best, idle = memory.get("best", math.inf), memory.get("idle", 0)
        name = "loss" if self.of == "loss" else main_metric(row, "validation")
        value = row[f"validation_{name}"]
        assert value is not None
        cost = -value if higher_is_better(name) else value
        best, idle = (cost, 0) if cost < best - self.min_delta else (best, idle + 1)
        reason = f"validation {name} has not improved for {idle} rounds" if idle >= self.rounds else None
        return reason, {"best": best, "idle": idle}
