"""Layers that work in stacked training, and helpers for networks of images and tables."""

import torch
from torch import nn

from fedexp.core.errors import ConfigError

Dropout = nn.Dropout  # kept because parts of others import it; engines seed every layer that draws


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation whose statistics ignore padded examples.

    With `mask [B]` set (by the stacked engine) the batch statistics are those of the unmasked examples, and the new
    running statistics are left in `updated` instead of being written in place; a batch without examples does not change
    them. Without a mask this is PyTorch's layer, except for its integer counter, which a row cannot hold.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, momentum=0.1)
        self.num_batches_tracked = None
        self.mask: torch.Tensor | None = None
        self.updated: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Images `[B, C, H, W]`, normalised."""
        if self.mask is None or not self.training:
            return super().forward(input)
        mean, var, count = self._statistics(input, self.mask)
        self.updated = self._moved(mean, var, count)
        scale = self.weight * torch.rsqrt(var + self.eps)
        return (input - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]

    def _statistics(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        weight = mask.to(x.dtype)[:, None, None, None]
        count = weight.sum() * (x.shape[2] * x.shape[3])
        total = count.clamp(min=1)
        mean = (x * weight).sum(dim=(0, 2, 3)) / total
        var = ((x - mean[:, None, None]).square() * weight).sum(dim=(0, 2, 3)) / total
        return mean, var, count

    def _moved(self, mean: torch.Tensor, var: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.running_mean is not None
        assert self.running_var is not None
        step = 0.1 * (count > 0)
        unbiased = var * count / (count - 1).clamp(min=1)
        new_mean = self.running_mean + step * (mean - self.running_mean)
        new_var = self.running_var + step * (unbiased - self.running_var)
        return new_mean.detach(), new_var.detach()


def images(shape: tuple[int, ...], who: str, least: int) -> tuple[int, int, int]:
    """The (channels, height, width) of images with at least `least` pixels a side; ConfigError for other examples."""
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ConfigError(
            f"model={who} needs images (channels, height, width) of at least {least} x {least} pixels, but the "
            f"dataset's examples have shape {shape}; use model=mlp, which takes any shape"
        )
    return shape[0], shape[1], shape[2]


class OneChannel(nn.Module):
    """Gives a table's features `[B, F]` the channel that a convolution expects, `[B, 1, F]`."""

    def forward(self, x):
        return x.unsqueeze(1)
