"""Coordinate-wise trimmed mean (Yin et al. 2018, arXiv 1803.01498).

In every column the c largest and c smallest values are dropped and the other n - 2c averaged. c is `byzantine`, or
floor(beta n) if `beta` is given (the paper's parameter, below 1/2). The divisor is the number kept; (1 - 2 beta) n is
the same only if beta n is an integer. Rows count alike. Needs 2c < n.
"""

import math
from typing import Annotated, Literal

import torch

from fedexp.parts import Columns, HonestMajority, Range, blocks, sorted_columns
from fedexp.parts.aggregator.reporting import BoundedRule


def trimmed_mean(delta: torch.Tensor, trim: int) -> torch.Tensor:
    """The mean `[D]` of every column of `delta [C, D]` without its `trim` largest and smallest values.

    Raises:
        ValueError: nothing would be left.
    """
    if 2 * trim >= len(delta):
        raise ValueError(f"trimming {trim} at each end leaves nothing of {len(delta)} rows")
    result = delta.new_empty(delta.shape[1])
    for columns, block in blocks(delta):
        middle = sorted_columns(block)[:, trim : len(delta) - trim]
        result[columns] = middle.mean(dim=1, dtype=torch.float64)
    return result


def trim_count(beta: float, rows: int) -> int:
    """floor(beta n), robust to products that rounding puts on the wrong side of an integer."""
    return min(math.floor(beta * rows + 1e-9), (rows - 1) // 2)


class TrimmedMean(HonestMajority, BoundedRule):
    """Reports as `byzantine` how many values it dropped at each end."""

    weighting: Literal["uniform"] = "uniform"
    beta: Annotated[float, Range(0, 0.5, high_open=True)] | None = None

    @property
    def bound_key(self) -> str:
        return "byzantine" if self.beta is None else "beta"

    def guards_against(self, rows: int) -> int:
        return super().guards_against(rows) if self.beta is None else trim_count(self.beta, rows)

    def effective_byzantine(self, rows: int, number: int) -> tuple[int | None, Columns]:
        if self.beta is None or rows == 0:
            return super().effective_byzantine(rows, number)
        trim = trim_count(self.beta, rows)
        return trim, {"byzantine": trim, "violated": 0}

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        return trimmed_mean(delta, byzantine), {}
