"""MeaMed, the mean around the median (Xie, Koyejo and Gupta 2018, arXiv 1802.10116).

In every column the n - f values that lie closest to their median are averaged. Rows count alike. Needs 2f < n. Where
two values lie equally far from the median the smaller one is taken.
"""

from typing import Literal

import torch

from fedexp.parts import Columns, HonestMajority, blocks, sorted_columns
from fedexp.parts.aggregator.bulyan import mean_around_median
from fedexp.parts.aggregator.reporting import BoundedRule


def average_around_median(delta: torch.Tensor, byzantine: int) -> torch.Tensor:
    """The mean `[D]` of the n - f values around the median of each column of `delta [C, D]`."""
    result = delta.new_empty(delta.shape[1])
    for columns, block in blocks(delta):
        result[columns] = mean_around_median(sorted_columns(block), len(delta) - byzantine).to(delta.dtype)
    return result


class MeaMed(HonestMajority, BoundedRule):
    """Averages what lies around the median."""

    weighting: Literal["uniform"] = "uniform"

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        return average_around_median(delta, byzantine), {}
