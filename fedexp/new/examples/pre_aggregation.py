"""What is done to the uploads before they are combined: write here which rows the aggregator gets.

As it stands, rows that are much longer than the others are left out. A part that mixes the rows of several clients says
so by `averages_rows`.
"""

from typing import Annotated

import torch

from fedexp.parts import Context, Memory, PreAggregation, Range, Uploads


def has_usual_length(delta: torch.Tensor, times: float) -> torch.Tensor:
    """Which rows `[C, D]` are at most so many times as long as the median row, bool [C]."""
    norm = delta.norm(dim=1)
    return norm <= times * norm.median() if len(norm) else norm.bool()


class OwnPreAggregation(PreAggregation):
    """Leaves out what is longer than `times` the median."""

    times: Annotated[float, Range(1)] = 3.0

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        return uploads.where(has_usual_length(uploads.delta, self.times).cpu().numpy()), memory
