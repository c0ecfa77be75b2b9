"""The absolute error: an example costs the mean over its K numbers of |output - target|."""

import torch

from fedexp.parts.loss.contract import Loss


class MAE(Loss):
    """For regression that outliers must not rule."""

    takes = ("numbers",)
    metrics = ("mae", "r2")

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (outputs - targets).abs().mean(dim=-1)
