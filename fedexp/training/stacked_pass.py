"""Batched forward and backward passes of sequential networks, for rows with their own entries.

The rows' entries lie in the order in which the passes want them, each layer's `[O, I]` together, and their gradients
beside them in the same order: no step moves them. All else is left to vmap. Legend: R rows, B batch, P trainable
entries, D entries of a row, K outputs.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from fedexp.core.values import Layout
from fedexp.parts.layers import BatchNorm, OneChannel
from fedexp.training.draws import Draws
from fedexp.training.lowered_layers import PRODUCTS, StackedLowered, StackedWidened
from fedexp.training.stacked_convolutions import WAYS, Unfolded, way_for
from fedexp.training.stacked_layers import (
    Spot,
    StackedAffine,
    StackedChannel,
    StackedConvolution,
    StackedDropout,
    StackedFlatten,
    StackedLayer,
    StackedPool,
    StackedReLU,
    StackedSame,
    StackedTanh,
)
from fedexp.training.stacked_norms import BatchStatistics, StackedNorm, group_norm
from fedexp.training.stacked_plan import LayerPlan, Planned


class StackedPass:
    """The batched layers of a network, forwards and backwards, on the entries of one bucket's rows."""

    def __init__(self, layers: list[StackedLayer], first: int) -> None:
        """`first` is the position of the first layer with entries; gradients before it are not needed."""
        self.layers = layers
        self.norms = [layer.norm for layer in layers if isinstance(layer, StackedNorm)]
        self.back = [layer.backward for layer in reversed(layers[first:])]
        for layer, following in reversed([*pairwise(layers)]):
            layer.target = following.room

    @property
    def begins(self) -> Unfolded | None:
        """The im2col convolution of the first layer, if it is one."""
        first = self.layers[0]
        return first.way if isinstance(first, StackedConvolution) and isinstance(first.way, Unfolded) else None

    def forward(self, x: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        """Returns the outputs `[R, B, K]` for `x [R, B, ...]` (images channels last), in training mode.

        `share [R, B]` is the weight of an example in the mean over its batch, 0 where there is none.
        """
        for norm in self.norms:
            if isinstance(norm, BatchStatistics):
                norm.share = share
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, slope: torch.Tensor) -> None:
        """Writes the gradients of the rows' entries, given those at the outputs, `[R, B, K]`."""
        for step in self.back:
            slope = step(slope)


class Binding:
    """Builds a bucket's passes on its rows `w [R, D]`, in the plan's order, and their gradients `[R, P]`."""

    def __init__(self, w: torch.Tensor, gradient: torch.Tensor, batch: int, memory_mb: float) -> None:
        self.w, self.gradient, self.batch, self.memory_mb = w, gradient, batch, memory_mb
        self.draws: Draws | None = None
        self.buffers: dict[str, torch.Tensor] = {}

    def made(self, plan: LayerPlan, layout: Layout, draws: Draws | None) -> StackedPass:
        """Returns the passes of all layers; dropout draws from `keyed_random`."""
        self.draws, begin, sizes = draws, layout.parameters, layout.sizes[layout.trainable :]
        for name, size in zip(layout.names[layout.trainable :], sizes, strict=True):
            self.buffers[name] = self.w[:, begin : begin + size]
            begin += size
        layers: list[StackedLayer] = []
        begin, first = 0, None
        for each in plan.layers:
            size = 0 if each.lines is None else each.lines.numel()
            spot = self._spot(each, begin, first is not None)
            make = partial(self._layer, each)
            layers.append(
                StackedLowered(spot, make) if plan.lowered and isinstance(each.layer, PRODUCTS) else make(spot)
            )
            first = len(layers) - 1 if size and first is None else first
            begin += size
        assert first is not None
        return StackedPass([*layers, *([StackedWidened()] if plan.lowered else [])], first)

    def _layer(self, each: Planned, spot: Spot) -> StackedLayer:
        return MAKERS[type(each.layer)](each, spot, self)

    def _spot(self, each: Planned, begin: int, asked: bool) -> Spot:
        shape = (0, 0) if each.lines is None else tuple(each.lines.shape)
        own = slice(begin, begin + shape[0] * shape[1])
        views = [
            rows[:, own].unflatten(1, shape) if own.stop > begin else rows[:, :0] for rows in (self.w, self.gradient)
        ]
        return Spot(views[0], views[1], self.batch, asked)


def _convolution(each: Planned, spot: Spot, binding: Binding) -> StackedLayer:
    way = WAYS[way_for(each.form, binding.batch, binding.memory_mb)]
    return StackedConvolution(way(each.form, spot.entries, spot.slopes, spot.batch, spot.asked))


def _norm(each: Planned, spot: Spot, binding: Binding) -> StackedLayer:
    assert isinstance(each.layer, BatchNorm)
    mean, var = (binding.buffers[f"{each.name}.{own}".lstrip(".")] for own in ("running_mean", "running_var"))
    return StackedNorm(spot, BatchStatistics(each.layer, (mean, var)))


def _dropout(each: Planned, _: Spot, binding: Binding) -> StackedLayer:
    assert isinstance(each.layer, nn.Dropout | nn.Dropout2d)
    if each.layer.p == 0:
        return StackedSame()
    assert binding.draws is not None
    return StackedDropout(each.layer, binding.draws, signals=len(each.shape) == 2)


Maker = Callable[[Any, Spot, Binding], StackedLayer]
MAKERS: dict[type[nn.Module], Maker] = {
    nn.Linear: lambda each, spot, _: StackedAffine(spot, bias=each.layer.bias is not None),
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.ReLU: lambda *_: StackedReLU(),
    nn.Tanh: lambda *_: StackedTanh(),
    nn.MaxPool1d: lambda each, *_: StackedPool(each.layer),
    nn.MaxPool2d: lambda each, *_: StackedPool(each.layer),
    BatchNorm: _norm,
    nn.GroupNorm: lambda each, spot, _: StackedNorm(spot, group_norm(each.layer)),
    nn.Dropout: _dropout,
    nn.Dropout2d: _dropout,
    nn.Flatten: lambda each, *_: StackedFlatten(each.shape, turned=each.turned),
    nn.Identity: lambda *_: StackedSame(),
    OneChannel: lambda *_: StackedChannel(),
}
