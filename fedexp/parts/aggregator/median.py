"""Coordinate-wise median (Yin et al. 2018, arXiv 1803.01498).

The middle value of every column; of an even number of rows the mean of the two middle ones. Rows count alike.
"""

from typing import Literal

import torch

from fedexp.parts import Aggregator, blocks, sorted_columns


def median(delta: torch.Tensor) -> torch.Tensor:
    """The median `[D]` of the columns of `delta [C, D]`."""
    low, high = (len(delta) - 1) // 2, len(delta) // 2
    result = delta.new_empty(delta.shape[1])
    for columns, block in blocks(delta):
        middle = sorted_columns(block)[:, low : high + 1]
        result[columns] = middle.double().mean(dim=1)
    return result


class Median(Aggregator):
    """Tolerates any values in fewer than half of the rows."""

    weighting: Literal["uniform"] = "uniform"

    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return median(delta)
