"""ARC, adaptive robust clipping (Allouah et al. 2024, arXiv 2405.14432).

Of n rows the k = floor(2 (f / n) (n - f)) longest are shortened to the length of the next one. Needs 2f < n.
"""

from dataclasses import replace

import numpy as np
import torch

from fedexp.parts import Context, Memory, PreAggregation, Uploads, distances_to
from fedexp.parts.byzantine import Tolerant
from fedexp.parts.pre_aggregation.nearest_neighbours import clip_rows


def clipping_length(norm: torch.Tensor, byzantine: int) -> float:
    """The length that the rows of lengths `norm [C]` are clipped to: that of the longest row that is left as it is."""
    clipped = 2 * byzantine * (len(norm) - byzantine) // len(norm)
    return float(norm.sort().values[len(norm) - clipped - 1])


class ARC(Tolerant, PreAggregation):
    """Reports the length; passes on no rows in a round in which the model is to stay unchanged."""

    bound = "2f < n"

    def max_byzantine(self, rows: int) -> int:
        return (rows - 1) // 2

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        rows = len(uploads.owner)
        byzantine, columns = self.effective_byzantine(rows, ctx.round)
        if byzantine is None:
            return uploads.where(np.zeros(rows, dtype=bool)), {"columns": columns | {"clipping_length": None}}
        length = clipping_length(distances_to(uploads.delta), byzantine)
        clipped = replace(uploads, delta=clip_rows(uploads.delta, length))
        return clipped, {"columns": columns | {"clipping_length": length}}
