"""The squared error: an example costs the mean over its K numbers of (output - target)**2."""

import torch

from fedexp.parts.loss.contract import Loss


class MSE(Loss):
    """For regression."""

    takes = ("numbers",)
    metrics = ("rmse", "r2")

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (outputs - targets).square().mean(dim=-1)
