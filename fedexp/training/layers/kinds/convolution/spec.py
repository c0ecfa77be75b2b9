"""The sizes of a convolution. Legend: B batch, H x W pixels, C input and O output channels."""

import math
from dataclasses import dataclass
from typing import Any

from torch import nn

Pair = tuple[int, int]


@dataclass(frozen=True)
class ConvolutionSpec:
    """The input size, kernel, stride and padding of a convolution; a signal is an image of height 1."""

    input_size: Pair
    channels: int
    outputs: int
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    bias: bool

    @staticmethod
    def of(layer: nn.Conv1d | nn.Conv2d, shape: tuple[int, ...]) -> "ConvolutionSpec":
        """Returns the sizes of a layer for inputs of this shape, `[C, H, W]` or `[C, W]`."""
        assert not isinstance(layer.padding, str)
        height, width = (1, shape[1]) if len(shape) == 2 else shape[1:]
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        kernel, stride, padding, dilation = map(_pair, sizes, (1, 1, 0, 1))
        channels, groups_and_bias = (layer.in_channels, layer.out_channels), (layer.groups, layer.bias is not None)
        return ConvolutionSpec((height, width), *channels, kernel, stride, padding, dilation, *groups_and_bias)

    @property
    def patch_size(self) -> int:
        """How many inputs one output sums over."""
        return math.prod(self.kernel) * self.channels // self.groups

    @property
    def entries_per_output(self) -> int:
        """How many entries one output channel has, with its bias."""
        return self.patch_size + self.bias

    @property
    def output_size(self) -> Pair:
        """The height and width of the output."""
        sides = zip(self.input_size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        height, width = (
            (side + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for side, kernel, step, pad, gap in sides
        )
        return height, width

    @property
    def im2col_floats(self) -> int:
        """How many floats im2col makes of one image."""
        return math.prod(self.output_size) * self.entries_per_output

    @property
    def scratch_floats(self) -> tuple[int, int]:
        """How many floats im2col makes of one image, and of its output gradient for the input gradient."""
        return self.im2col_floats, math.prod(self.input_size) * math.prod(self.kernel) * self.outputs

    @property
    def grad_padding(self) -> Pair:
        """The padding of the output gradient that yields the input gradient; negative where that is impossible."""
        vertical, horizontal = zip(self.kernel, self.padding, self.dilation, strict=True)
        return vertical[2] * (vertical[0] - 1) - vertical[1], horizontal[2] * (horizontal[0] - 1) - horizontal[1]

    def settings(self, groups: int) -> tuple[Any, ...]:
        """The arguments of PyTorch's convolution behind weight and bias."""
        return self.stride, self.padding, self.dilation, False, (0, 0), groups


def _pair(size: tuple[int, ...], height_value: int) -> Pair:
    """Returns two numbers; for a signal, an image of height 1, the first is `height_value`."""
    return (size[0], size[1]) if len(size) == 2 else (height_value, size[0])
