"""Manual passes of normalisation layers, like those of `written_layers`."""

import torch
from torch import nn

from fedexp.parts.layers import BatchNorm
from fedexp.training.written_layers import Place, Written

aten = torch.ops.aten


class Norm(Written):
    """Batch normalisation by the batch's statistics, which update the running ones."""

    def __init__(self, layer: BatchNorm, place: Place) -> None:
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.weight, self.bias, self.eps = layer.weight.detach(), layer.bias.detach(), layer.eps
        self.running = (layer.running_mean.detach(), layer.running_var.detach())
        self.step, self.mask = layer.step, [place.asked, True, True]
        self.slopes = place.slopes["weight"], place.slopes["bias"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        y, *self.found = torch.native_batch_norm(x, self.weight, self.bias, *self.running, True, self.step, self.eps)
        return y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        given, *own = aten.native_batch_norm_backward.default(
            slope, self.x, self.weight, *self.running, *self.found, True, self.eps, self.mask
        )
        for view, found in zip(self.slopes, own, strict=True):
            view.copy_(found)
        return slope if given is None else given


class GroupNorm(Written):
    """Normalisation of each example by groups of its channels."""

    def __init__(self, layer: nn.GroupNorm, place: Place) -> None:
        self.weight, self.bias, self.eps = layer.weight.detach(), layer.bias.detach(), layer.eps
        self.groups, self.mask = layer.num_groups, [place.asked, True, True]
        self.slopes = place.slopes["weight"], place.slopes["bias"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.contiguous(memory_format=_format(x))
        self.sizes = (len(x), x.shape[1], x[0, 0].numel(), self.groups)
        y, *self.found = torch.native_group_norm(self.x, self.weight, self.bias, *self.sizes, self.eps)
        return y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        slope = slope.contiguous(memory_format=_format(self.x))
        given, *own = aten.native_group_norm_backward.default(
            slope, self.x, *self.found, self.weight, *self.sizes, self.mask
        )
        for view, found in zip(self.slopes, own, strict=True):
            view.copy_(found)
        return slope if given is None else given


def _format(x: torch.Tensor) -> torch.memory_format:
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format
