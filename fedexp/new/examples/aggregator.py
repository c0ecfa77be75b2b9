"""How the uploads become one update: write here what is made of the rows.

As it stands, their mean by the clients' shares, times a number. Where a rule needs more than the rows (who sent which,
the last model, a memory), override `combine` instead.
"""

from typing import Annotated

import torch

from fedexp.parts import Aggregator, Positive


def weighted_mean(delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """`[D]` of the rows `delta [C, D]` and their shares `[C]`, which sum to one."""
    return share.to(delta.dtype) @ delta


class OwnAggregator(Aggregator):
    """Goes `scale` times as far as the mean."""

    scale: Annotated[float, Positive] = 1.0

    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return self.scale * weighted_mean(delta, share)
