"""Huber's loss (Huber 1964, "Robust Estimation of a Location Parameter"): squared near the target, absolute far off.

A number that misses by e costs e**2 / 2 where |e| <= delta, and delta (|e| - delta / 2) beyond. An example costs the
mean over its K numbers.
"""

from typing import Annotated

import torch
from torch.nn import functional as F

from fedexp.parts import Loss, Positive


class Huber(Loss):
    """For regression in which small misses count more than large ones."""

    takes = ("numbers",)
    metrics = ("mae", "r2")

    delta: Annotated[float, Positive] = 1.0

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.huber_loss(outputs, targets.to(outputs.dtype), reduction="none", delta=self.delta).mean(dim=-1)
