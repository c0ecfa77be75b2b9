"""CAF, the covariance-bound agnostic filter (Allouah et al. 2025, arXiv 2505.01874, algorithm 2).

All rows begin with weight 1. Again and again their weighted mean and the direction of their largest variance are found,
and each row's weight is lowered in proportion to its squared distance from the mean along it, so that the farthest row
that still has a weight drops out. It ends once the weights sum to n - 2f or less; the mean with the smallest largest
eigenvalue counts. Needs 2f < n. Eigenvalues are exact where the paper takes the power method.

Deviation from byzfl, the program of the paper's authors: there the farthest row counts although it is out. Then a turn
may drop nobody, and with a row far enough out the weights hardly fall any more.
"""

from typing import ClassVar, Literal

import torch

from fedexp.parts import Columns, HonestMajority, principal_squares, squared_distances
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.reporting import BoundedRule


def filter_weights(square: torch.Tensor, byzantine: int) -> torch.Tensor:
    """The weights `[C]`, summing to one, of rows at squared distances `square [C, C]` by which they are averaged."""
    weight = torch.ones(len(square), dtype=torch.float64)
    best, smallest = weight / weight.sum(), float("inf")
    while True:
        share = weight / weight.sum()
        largest, squares = principal_squares(square, share)
        if largest < smallest:
            best, smallest = share, largest
        if largest == 0:
            return best
        weight = weight * (1 - squares / squares[weight > 0].max()).clamp(min=0)
        if weight.sum() <= len(square) - 2 * byzantine:
            return best


class CAF(HonestMajority, BoundedRule):
    """Reports how many rows have a weight in the mean that it takes."""

    idle_columns: ClassVar[Columns] = {"kept": 0}
    weighting: Literal["uniform"] = "uniform"

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        weight = filter_weights(squared_distances(delta).cpu(), byzantine)
        return weighted_mean(delta, weight.to(delta.device)), {"kept": int((weight > 0).sum())}
