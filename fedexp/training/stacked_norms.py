"""Batched normalisation layers; their own gradients come from autograd, in full precision.

Legend: R rows, B batch, H x W pixels, C channels. Images are `[R, B, H, W, C]`.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.parts.layers import BatchNorm
from fedexp.training.stacked_layers import Spot, StackedLayer


class StackedNorm(StackedLayer):
    """A normalisation layer differentiated by autograd; its entries are scales and shifts, `[R, 2, C]`."""

    def __init__(self, spot: Spot, norm: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        """`norm` makes `[R, B, H, W, C]` of such images, the scales and the shifts `[R, 1, 1, 1, C]`."""
        self.entries, self.slopes, self.asked, self.norm = spot.entries, spot.slopes, spot.asked, norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.came = x.dtype
        with torch.enable_grad():
            own = [each.clone() for each in self.entries.unbind(1)]  # running statistics move in the same rows
            self.given = [each.detach().requires_grad_() for each in (x.to(own[0].dtype), *own)]
            scale, shift = (each[:, None, None, None] for each in self.given[1:])
            self.y = self.norm(self.given[0], scale, shift)
        return self.y.detach()

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        given, *own = torch.autograd.grad(self.y, self.given, slope.to(self.y.dtype))
        torch.stack(own, dim=1, out=self.slopes)
        del self.y
        return given.to(self.came)


def group_norm(
    layer: nn.GroupNorm,
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Returns a function for `BatchedNorm` that normalises groups of each example's channels."""

    def normed(x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        y = F.group_norm(x.flatten(0, 1).permute(0, 3, 1, 2), layer.num_groups, eps=layer.eps)
        return y.permute(0, 2, 3, 1).unflatten(0, x.shape[:2]) * scale + shift

    return normed


class BatchStatistics:
    """Batch normalisation by the statistics of each row's unmasked examples, for `BatchedNorm`."""

    share: torch.Tensor  # of each example in its batch, [R, B]: 0 where there is none

    def __init__(self, layer: BatchNorm, running: tuple[torch.Tensor, torch.Tensor]) -> None:
        """`running` are the rows' means and variances, `[R, C]` each, which each forward pass moves."""
        self.step, self.eps, self.running = layer.step, layer.eps, running

    def __call__(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        """Returns the images `[R, B, H, W, C]` normalised."""
        weight = (self.share > 0).to(x.dtype)[:, :, None, None, None]
        count = weight.sum(dim=(1, 2, 3, 4))[:, None] * (x.shape[2] * x.shape[3])  # [R, 1]
        total = count.clamp(min=1)
        mean = (x * weight).sum(dim=(1, 2, 3)) / total
        apart = x - mean[:, None, None, None]
        var = (apart.square() * weight).sum(dim=(1, 2, 3)) / total
        self._move(mean.detach(), (var * count / (count - 1).clamp(min=1)).detach(), count)
        return apart * (scale * torch.rsqrt(var + self.eps)[:, None, None, None]) + shift

    def _move(self, mean: torch.Tensor, var: torch.Tensor, count: torch.Tensor) -> None:
        step = self.step * (count > 0)
        with torch.no_grad():
            for held, new in zip(self.running, (mean, var), strict=True):
                held.add_(torch.where(count > 0, step * (new - held), 0.0))
