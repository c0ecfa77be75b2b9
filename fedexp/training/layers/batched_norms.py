"""Batched normalisation layers; their own gradients come from autograd, in full precision.

Legend: R rows, B batch, H x W pixels, C channels. Images are `[R, B, H, W, C]`.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.parts.layers import BatchNorm
from fedexp.training.layers.batched_layers import BatchedContext, BatchedLayer


class BatchedNorm(BatchedLayer):
    """A normalisation layer differentiated by autograd; its entries are scales and shifts, `[R, 2, C]`."""

    def __init__(
        self, context: BatchedContext, norm: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> None:
        """`norm` makes `[R, B, H, W, C]` of such images, the scales and the shifts `[R, 1, 1, 1, C]`."""
        self.entries, self.grads, self.needs_input_grad, self.norm = (
            context.entries,
            context.grads,
            context.needs_input_grad,
            norm,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.input_dtype = x.dtype
        with torch.enable_grad():
            entries = [tensor.clone() for tensor in self.entries.unbind(1)]  # running statistics move in the same rows
            self.leaves = [tensor.detach().requires_grad_() for tensor in (x.to(entries[0].dtype), *entries)]
            scale, shift = (tensor[:, None, None, None] for tensor in self.leaves[1:])
            self.y = self.norm(self.leaves[0], scale, shift)
        return self.y.detach()

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad_input, *entry_grads = torch.autograd.grad(self.y, self.leaves, grad.to(self.y.dtype))
        torch.stack(entry_grads, dim=1, out=self.grads)
        del self.y
        return grad_input.to(self.input_dtype)


def make_group_norm(
    layer: nn.GroupNorm,
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Returns a function for `BatchedNorm` that normalises groups of the channels of images `[R, B, H, W, C]`."""

    def normalise(x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        y = F.group_norm(x.flatten(0, 1).permute(0, 3, 1, 2), layer.num_groups, eps=layer.eps)
        return y.permute(0, 2, 3, 1).unflatten(0, x.shape[:2]) * scale + shift

    return normalise


class MaskedBatchNorm:
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
        centred = x - mean[:, None, None, None]
        var = (centred.square() * weight).sum(dim=(1, 2, 3)) / total
        self._update_running(mean.detach(), (var * count / (count - 1).clamp(min=1)).detach(), count)
        return centred * (scale * torch.rsqrt(var + self.eps)[:, None, None, None]) + shift

    def _update_running(self, mean: torch.Tensor, var: torch.Tensor, count: torch.Tensor) -> None:
        step = self.step * (count > 0)
        with torch.no_grad():
            for statistic, new in zip(self.running, (mean, var), strict=True):
                statistic.add_(torch.where(count > 0, step * (new - statistic), 0.0))
