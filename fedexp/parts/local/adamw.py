"""Local AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101, algorithm 2): Adam whose weight decay is decoupled.

w <- (1 - lr weight_decay) w before each step of Adam, as in torch.optim.AdamW; in the paper the decay is multiplied by
the schedule alone, not by the rate. Its moments are fresh in every round.
"""

from typing import Annotated

import torch

from fedexp.core.part import Range
from fedexp.parts.local.adam import Adam


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    weight_decay: Annotated[float, Range(0)] = 0.01

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return grad

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        part = self.lr * self.weight_decay
        w.mul_(1 - (part if active is None else active * part))
        super().update(w, grad, slots, step, active)
