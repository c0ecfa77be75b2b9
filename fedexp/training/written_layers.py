"""Manual passes of known layers: PyTorch's kernels as autograd calls them, without its bookkeeping.

A layer keeps of its last forward pass what its backward pass needs, and writes the gradients of its entries into views
of a flat gradient. The kernels and their order are those of autograd, so the bits are, too.

Legend: B batch, I inputs and O outputs of a linear layer, C channels.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from fedexp.training.draws import Draws

aten = torch.ops.aten


@dataclass(frozen=True)
class Place:
    """What a layer needs to know of its position in a chain.

    `slopes` are the views that take the gradients of its entries, by name. `dims` is the number of dimensions of its
    input. `asked` says whether somebody needs the gradient at its input, `spare` whether nobody needs the input again.
    `draws` is what dropout is drawn from, if the network draws at all.
    """

    slopes: dict[str, torch.Tensor]
    dims: int
    asked: bool
    spare: bool
    draws: Draws | None


class Written(ABC):
    """A layer of a chain with manual forward and backward passes."""

    fresh = True  # whether its output is a tensor of its own, which it does not need again

    def dims(self, dims: int) -> int:
        """Returns the number of dimensions of its output, given that of its input."""
        return dims

    @abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's output for `x [B, ...]`."""

    @abstractmethod
    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        """Returns the input gradient `[B, ...]`, given the output gradient `[B, ...]`; arbitrary if not needed."""


class Affine(Written):
    """y = x W^T + b for `x [B, I]`."""

    def __init__(self, layer: nn.Linear, place: Place) -> None:
        self.weight, self.asked = layer.weight.detach(), place.asked
        self.turned, self.bias = self.weight.t(), None if layer.bias is None else layer.bias.detach()
        self.weight_slope, self.bias_slope = place.slopes["weight"], place.slopes.get("bias")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return torch.mm(x, self.turned) if self.bias is None else torch.addmm(self.bias, x, self.turned)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        torch.mm(slope.t(), self.x, out=self.weight_slope)
        if self.bias_slope is not None:
            torch.sum(slope, 0, out=self.bias_slope)
        return torch.mm(slope, self.weight) if self.asked else slope


class Convolution(Written):
    """A convolution in one or two dimensions."""

    def __init__(self, layer: nn.Conv1d | nn.Conv2d, place: Place) -> None:
        self.weight, self.bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        self.weight_slope, self.bias_slope = place.slopes["weight"], place.slopes.get("bias")
        assert not isinstance(layer.padding, str)
        none = [0] * (place.dims - 2)
        self.settings = (layer.stride, layer.padding, layer.dilation, False, none, layer.groups)
        self.mask = [place.asked, True, self.bias is not None]
        self.width = None if self.bias is None else [len(self.bias)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return torch.convolution(x, self.weight, self.bias, *self.settings)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        given, weight, bias = aten.convolution_backward.default(
            slope, self.x, self.weight, self.width, *self.settings, self.mask
        )
        self.weight_slope.copy_(weight)
        if self.bias_slope is not None:
            self.bias_slope.copy_(bias)
        return slope if given is None else given


class ReLU(Written):
    """max(x, 0)."""

    fresh = False

    def __init__(self, place: Place) -> None:
        self.act: Callable[[torch.Tensor], torch.Tensor] = torch.relu_ if place.spare else torch.relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = self.act(x)
        return self.y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return aten.threshold_backward.default(slope, self.y, 0)  # in place it would lie otherwise in memory


class Tanh(Written):
    """tanh(x)."""

    fresh = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.tanh(x)
        return self.y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return aten.tanh_backward.default(slope, self.y)


class Pool(Written):
    """Max pooling of images; signals `[B, C, length]` are images of height 1, as in PyTorch."""

    def __init__(self, layer: nn.MaxPool1d | nn.MaxPool2d) -> None:
        self.signals = isinstance(layer, nn.MaxPool1d)
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        if self.signals:
            sizes = tuple((still, *_each(size)) for still, size in zip((1, 1, 0, 1), sizes, strict=True))
        self.settings = (*map(_each, sizes), layer.ceil_mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.unsqueeze(2) if self.signals else x
        y, self.index = aten.max_pool2d_with_indices.default(self.x, *self.settings)
        return y.squeeze(2) if self.signals else y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        slope = slope.unsqueeze(2) if self.signals else slope
        slope = aten.max_pool2d_with_indices_backward.default(slope, self.x, *self.settings, self.index)
        return slope.squeeze(2) if self.signals else slope


class Dropout(Written):
    """Drops single values, or whole channels, and scales up the others."""

    def __init__(self, layer: nn.Dropout | nn.Dropout2d, draws: Draws) -> None:
        self.keep, self.draws, self.channels = 1 - layer.p, draws, isinstance(layer, nn.Dropout2d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = x.new_empty((*x.shape[:2], 1, 1)) if self.channels else torch.empty_like(x)
        self.factor = self.draws.coins(noise, self.keep).div_(self.keep)
        return x * self.factor

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope * self.factor


class Same(Written):
    """Returns its input."""

    fresh = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope


class Flatten(Written):
    """Flattens each example."""

    fresh = False

    def dims(self, dims: int) -> int:
        return 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.shape = x.shape
        return x.flatten(1)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope.reshape(self.shape)


class Channel(Written):
    """Adds the channel that a convolution expects."""

    fresh = False

    def dims(self, dims: int) -> int:
        return dims + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(1)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope.squeeze(1)


def _each(size: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return tuple(size) if isinstance(size, tuple | list) else (size,)
