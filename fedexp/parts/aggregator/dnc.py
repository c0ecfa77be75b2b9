"""Divide and conquer, DnC (Shejwalkar and Houmansadr 2021, NDSS; doi 10.14722/ndss.2021.24498).

In each of `iterations` turns some columns are drawn, the rows are centred there, and each row is scored by its squared
projection on their first right singular vector. The floor(fraction f) rows with the largest scores are out. The mean is
taken of the rows that no turn threw out. Ties keep the smaller client number. Needs iterations * floor(fraction f) < n.
The paper takes fraction = 1. Public programs draw 10,000 columns in one turn or in five; one draws a fifth.
"""

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from fedexp.parts import (
    Columns,
    Context,
    Positive,
    Range,
    Uploads,
    Weights,
    principal_squares,
    squared_distances,
)
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.reporting import BoundedRule


def outlying_rows(delta: torch.Tensor, count: int) -> torch.Tensor:
    """The `count` rows of `delta [C, D]` farthest from their mean along the direction of their largest variance."""
    share = torch.full((len(delta),), 1 / len(delta), dtype=torch.float64)
    _, squares = principal_squares(squared_distances(delta).cpu(), share)
    return squares.flip(0).argsort(descending=True, stable=True)[:count].neg() + len(delta) - 1


class DnC(BoundedRule):
    """Reports how many rows were kept."""

    bound = "iterations * floor(fraction * f) < n"
    idle_columns: ClassVar[Columns] = {"kept": 0}
    weighting: Literal["uniform"] = "uniform"

    iterations: Annotated[int, Range(1)] = 1
    dimensions: Annotated[int, Range(1)] = 10_000
    fraction: Annotated[float, Positive] = 1.0

    def max_byzantine(self, rows: int) -> int:
        fitting = (f for f in range(rows, -1, -1) if self.iterations * self._removal_count(f) < rows)
        return next(fitting, -1)

    def reduce_in_round(
        self, weights: Weights, uploads: Uploads, byzantine: int, ctx: Context
    ) -> tuple[torch.Tensor, Columns]:
        rows, columns = uploads.delta.shape
        mask, rng = np.ones(rows, dtype=bool), ctx.rng("aggregator")
        for _ in range(self.iterations):
            drawn = np.sort(rng.choice(columns, min(self.dimensions, columns), replace=False))
            index = torch.from_numpy(drawn).to(uploads.delta.device)
            mask[outlying_rows(uploads.delta[:, index], self._removal_count(byzantine)).numpy()] = False
        share = torch.from_numpy(mask / mask.sum()).to(uploads.delta.device)
        return weighted_mean(uploads.delta, share), {"kept": int(mask.sum())}

    def _removal_count(self, byzantine: int) -> int:
        return math.floor(self.fraction * byzantine + 1e-9)
