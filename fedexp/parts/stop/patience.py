"""Ends a run when the loss on the server's validation data has not improved for some rounds (early stopping)."""

import math
from dataclasses import dataclass
from typing import Annotated

from fedexp.core.part import Range
from fedexp.core.values import Columns, Memory
from fedexp.parts.stop.contract import Stop


@dataclass(frozen=True, kw_only=True)
class Patience(Stop):
    """`rounds` without an improvement of the best validation loss by more than `min_delta`."""

    rounds: Annotated[int, Range(1)] = 10
    min_delta: Annotated[float, Range(0)] = 0.0

    needs_validation = True

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        best, idle = memory.get("best", math.inf), memory.get("idle", 0)
        loss = row["validation_loss"]
        assert loss is not None
        best, idle = (loss, 0) if loss < best - self.min_delta else (best, idle + 1)
        reason = f"validation loss has not improved for {idle} rounds" if idle >= self.rounds else None
        return reason, {"best": best, "idle": idle}
