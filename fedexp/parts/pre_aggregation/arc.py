"""ARC, adaptive robust clipping (Allouah et al. 2024, arXiv 2405.14432).

Of n rows the k = floor(2 (f / n) (n - f)) longest are shortened to the length of the next one. Needs 2f < n.
"""

from typing import ClassVar

import torch

from fedexp.parts import Columns, clip_rows, distances_to
from fedexp.parts.pre_aggregation.bounded import BoundedPreAggregation


def clipping_length(norm: torch.Tensor, byzantine: int) -> float:
    """The length that the rows of lengths `norm [C]` are clipped to: that of the longest row that is left as it is."""
    clipped = 2 * byzantine * (len(norm) - byzantine) // len(norm)
    return float(norm.sort().values[len(norm) - clipped - 1])


class ARC(BoundedPreAggregation):
    """Reports the length."""

    idle_columns: ClassVar[Columns] = {"clipping_length": None}

    def change_rows(self, delta: torch.Tensor, byzantine: int) -> tuple[torch.Tensor, Columns]:
        length = clipping_length(distances_to(delta), byzantine)
        return clip_rows(delta, length), {"clipping_length": length}
