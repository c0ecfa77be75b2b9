"""Layers under autocast: products in bfloat16, with entries that are rounded at every step.

All other layers compute in whatever they are given, and their own entries stay as they are. Legend: B batch.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from fedexp.training.stacked_layers import Spot, StackedLayer
from fedexp.training.written_layers import Place, Written

PRODUCTS = (nn.Linear, nn.Conv1d, nn.Conv2d)
Tensors = list[torch.Tensor]


class Rounding:
    """Bfloat16 copies of entries and of their gradients."""

    def __init__(self, entries: Tensors, slopes: Tensors) -> None:
        """`entries` and `slopes` are any tensors, in the same order."""
        self.entries, self.slopes = entries, slopes
        self.rounded = [torch.zeros_like(entry, dtype=torch.bfloat16) for entry in entries]
        self.found = [torch.zeros_like(slope, dtype=torch.bfloat16) for slope in slopes]

    def enter(self, x: torch.Tensor) -> torch.Tensor:
        """Rounds the entries and returns the rounded input (any shape)."""
        self.came = x.dtype
        for rounded, entry in zip(self.rounded, self.entries, strict=True):
            rounded.copy_(entry)
        return x.to(torch.bfloat16)

    def leave(self, given: torch.Tensor) -> torch.Tensor:
        """Copies the gradients back; returns the input gradient (any shape) in the input's precision."""
        for slope, found in zip(self.slopes, self.found, strict=True):
            slope.copy_(found)
        return given.to(self.came)


class Lowered(Written):
    """A linear or convolution layer that multiplies in bfloat16."""

    def __init__(self, layer: nn.Module, place: Place, make: Callable[[Any, Place], Written | None]) -> None:
        names = [name for name, _ in layer.named_parameters()]
        entries = [entry.detach() for entry in layer.parameters()]
        self.rounding, low = Rounding(entries, [place.slopes[name] for name in names]), copy.deepcopy(layer)
        for name, rounded in zip(names, self.rounding.rounded, strict=True):
            setattr(low, name, nn.Parameter(rounded))
        made = make(low, replace(place, slopes=dict(zip(names, self.rounding.found, strict=True))))
        assert made is not None
        self.low = made

    def dims(self, dims: int) -> int:
        return self.low.dims(dims)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.low.forward(self.rounding.enter(x))

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return self.rounding.leave(self.low.backward(slope.to(torch.bfloat16)))


class Widened(Written):
    """Casts the outputs of a bfloat16 network to float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.came = x.dtype
        return x.float()

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope.to(self.came)


class StackedLowered(StackedLayer):
    """A linear or convolution layer of several rows that multiplies in bfloat16."""

    def __init__(self, spot: Spot, make: Callable[[Spot], StackedLayer]) -> None:
        self.rounding = Rounding([spot.entries], [spot.slopes])
        self.low = make(replace(spot, entries=self.rounding.rounded[0], slopes=self.rounding.found[0]))

    @property
    def room(self) -> torch.Tensor | None:
        return self.low.room

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.low.forward(self.rounding.enter(x))

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return self.rounding.leave(self.low.backward(slope.to(torch.bfloat16)))


class StackedWidened(Widened, StackedLayer):
    """Casts the outputs of all rows to float32."""
