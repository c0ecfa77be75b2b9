"""The sizes of a convolution. Legend: B batch, H x W pixels, C input and O output channels."""

import math
from dataclasses import dataclass
from typing import Any

from torch import nn

Pair = tuple[int, int]


@dataclass(frozen=True)
class Form:
    """The sizes of a convolution: of its input, its kernel and its steps; a signal is an image of height 1."""

    size: Pair
    channels: int
    outputs: int
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    bias: bool

    @staticmethod
    def of(layer: nn.Conv1d | nn.Conv2d, shape: tuple[int, ...]) -> "Form":
        """The form of a layer for inputs `[C, H, W]`, or `[C, W]`, of this shape."""
        assert not isinstance(layer.padding, str)
        height, width = (1, shape[1]) if len(shape) == 2 else shape[1:]
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        kernel, stride, padding, dilation = map(_pair, sizes, (1, 1, 0, 1))
        channels, more = (layer.in_channels, layer.out_channels), (layer.groups, layer.bias is not None)
        return Form((height, width), *channels, kernel, stride, padding, dilation, *more)

    @property
    def patch(self) -> int:
        """How many numbers a kernel multiplies."""
        return math.prod(self.kernel) * self.channels // self.groups

    @property
    def entries(self) -> int:
        """How many entries an output channel has."""
        return self.patch + self.bias

    @property
    def out(self) -> Pair:
        """Height and width of the output."""
        sides = zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        height, width = (
            (side + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for side, kernel, step, pad, gap in sides
        )
        return height, width

    @property
    def columns(self) -> int:
        """How many floats the patches of an image are."""
        return math.prod(self.out) * self.entries

    @property
    def around(self) -> Pair:
        """By how much the slope is padded to find the gradient at the input; negative where there is no such way."""
        tall, wide = zip(self.kernel, self.padding, self.dilation, strict=True)
        return tall[2] * (tall[0] - 1) - tall[1], wide[2] * (wide[0] - 1) - wide[1]

    def settings(self, groups: int) -> tuple[Any, ...]:
        """The arguments of PyTorch's convolution behind weight and bias."""
        return self.stride, self.padding, self.dilation, False, (0, 0), groups


def _pair(size: tuple[int, ...], still: int) -> Pair:
    """Two numbers of two, or of one for a signal, which is an image of height 1."""
    return (size[0], size[1]) if len(size) == 2 else (still, size[0])
