"""Krum: the update that lies closest to its neighbours (Blanchard et al. 2017, arXiv 1703.02757).

The score of a row is the sum of squared distances to its n - f - 2 nearest others (of n rows, f may be Byzantine); the
row with the smallest score is the update. Ties go to the smallest client number. Needs 2f + 2 < n. Implementations that
count n - f - 1 neighbours, or the row itself among them, compute another rule.
"""

from typing import Literal

import torch

from fedexp.parts import Columns, squared_distances
from fedexp.parts.aggregator.reporting import BoundedRule


def krum_scores(square: torch.Tensor, byzantine: int) -> torch.Tensor:
    """Scores `[C]` of rows at squared distances `square [C, C]`.

    Raises:
        ValueError: 2f + 2 < n does not hold.
    """
    clients = len(square)
    if 2 * byzantine + 2 >= clients:
        raise ValueError(f"Krum needs 2f + 2 < n, got f = {byzantine} and n = {clients}")
    nearest = square.sort(dim=1).values  # the first is the row itself, or another at distance 0
    return nearest[:, 1 : clients - byzantine - 1].sum(dim=1)


def krum(delta: torch.Tensor, byzantine: int) -> torch.Tensor:
    """The row `[D]` of `delta [C, D]` with the smallest score."""
    return delta[krum_scores(squared_distances(delta), byzantine).argmin()]


class Krum(BoundedRule):
    """Takes one client's update unchanged."""

    bound = "2f + 2 < n"
    weighting: Literal["uniform"] = "uniform"

    def max_byzantine(self, rows: int) -> int:
        return (rows - 3) // 2

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        return krum(delta, byzantine), {}
