"""Batched passes of known layers for rows with their own entries, without autograd and vmap.

Data is `[R, B, H, W, C]`, channels last, or `[R, B, F]`; a signal is an image of height 1. A layer's entries are a view
`[R, O, I]` of the rows: a line an output, its bias last, so that a one behind the inputs adds it, and the gradients of
both come out of one product. Persistent tensors (borders of zeros, columns of ones) are made once, before a GPU
captures a step. Legend: R rows, B batch, H x W pixels, C channels, F features, O outputs, I entries a line.
"""

from dataclasses import dataclass

import torch
from torch import nn

from fedexp.training.draws import Draws
from fedexp.training.stacked_convolutions import Convolving
from fedexp.training.written_layers import Same, Written

aten = torch.ops.aten


@dataclass(frozen=True)
class Spot:
    """What a layer is built from: its `entries` and their `grads`, `[R, O, I]`, and the batch size.

    `asked` says whether somebody needs the gradient at its input.
    """

    entries: torch.Tensor
    slopes: torch.Tensor
    batch: int
    asked: bool


class StackedLayer(Written):
    """One layer of a chain; `output_buffer` is where the next layer wants its input, if it has a preference."""

    target: torch.Tensor | None = None

    @property
    def room(self) -> torch.Tensor | None:
        """A buffer in which its input `[R, B, ...]` needs no copy; None if there is none."""
        return None

    def target_for(self, x: torch.Tensor) -> torch.Tensor | None:
        """Returns the output buffer if its dtype is that of `x [R, B, ...]`, else None."""
        return self.target if self.target is not None and self.target.dtype == x.dtype else None


class StackedAffine(StackedLayer):
    """y = x W^T + b for `x [R, B, F]`."""

    def __init__(self, spot: Spot, *, bias: bool) -> None:
        self.entries, self.slopes, self.asked, self.bias = spot.entries, spot.slopes, spot.asked, bias
        self.x = spot.entries.new_ones((len(spot.entries), spot.batch, spot.entries.shape[2]))

    @property
    def room(self) -> torch.Tensor:
        return self.x[..., :-1] if self.bias else self.x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.data_ptr() != self.room.data_ptr():
            self.room.copy_(x)
        return torch.bmm(self.x, self.entries.transpose(1, 2))

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        torch.bmm(slope.transpose(1, 2), self.x, out=self.slopes)
        if not self.asked:
            return slope
        return torch.bmm(slope, self.entries[..., :-1] if self.bias else self.entries)


class StackedConvolution(StackedLayer):
    """A convolution by one of the implementations in `stacked_convolutions`."""

    def __init__(self, way: Convolving) -> None:
        self.way = way

    @property
    def room(self) -> torch.Tensor | None:
        return self.way.room

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.way.forward(x)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return self.way.backward(slope)


class StackedReLU(StackedLayer):
    """max(x, 0), written to the output buffer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.clamp_min(x, 0, out=self.target_for(x))
        return self.y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return aten.threshold_backward.default(slope, self.y, 0)


class StackedTanh(StackedLayer):
    """tanh(x), written to the output buffer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.tanh(x, out=self.target_for(x))
        return self.y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return aten.tanh_backward.default(slope, self.y)


class StackedPool(StackedLayer):
    """Max pooling: the images of all rows are one batch."""

    def __init__(self, layer: nn.MaxPool1d | nn.MaxPool2d) -> None:
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        stills = (1, 1, 0, 1) if isinstance(layer, nn.MaxPool1d) else (None,) * 4
        pairs = [_pair(size, still) for size, still in zip(sizes, stills, strict=True)]
        self.settings = (*pairs, layer.ceil_mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x, self.rows = x.flatten(0, 1).permute(0, 3, 1, 2), len(x)
        y, self.index = aten.max_pool2d_with_indices.default(self.x, *self.settings)
        return y.permute(0, 2, 3, 1).contiguous().unflatten(0, (self.rows, -1))

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        slope = slope.flatten(0, 1).permute(0, 3, 1, 2)
        given = aten.max_pool2d_with_indices_backward.default(slope, self.x, *self.settings, self.index)
        return given.permute(0, 2, 3, 1).contiguous().unflatten(0, (self.rows, -1))


class StackedDropout(StackedLayer):
    """Drops single values, or whole channels; drawn for `[R, B, C, H, W]`, as every other engine draws."""

    def __init__(self, layer: nn.Dropout | nn.Dropout2d, draws: Draws, *, signals: bool) -> None:
        """`signals` says whether draws have the shape `[R, B, C, W]`."""
        self.keep, self.draws, self.channels = 1 - layer.p, draws, isinstance(layer, nn.Dropout2d)
        self.signals = signals

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], 1, 1, x.shape[-1]) if self.channels else x.shape
        noise = x.new_empty(shape)
        drawn = noise.movedim(-1, 2) if x.dim() == 5 else noise
        self.draws.coins(drawn.squeeze(3) if self.signals else drawn, self.keep)
        self.factor = noise.div_(self.keep)
        return x * self.factor

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope * self.factor


class StackedFlatten(StackedLayer):
    """Flattens each example: as stored, or with the channels first as PyTorch does."""

    def __init__(self, shape: tuple[int, ...], *, turned: bool) -> None:
        """For examples of this shape, `[C, H, W]`, `[C, W]` or `[F]`."""
        channels, sides = shape[0], (1, *shape[1:])[-2:]
        self.images, self.turned = len(shape) > 1, turned
        self.sizes, self.first = (*sides, channels), (channels, *sides)

    @property
    def room(self) -> torch.Tensor | None:
        if self.target is None or self.turned or not self.images:
            return self.target if not self.images else None
        return self.target.unflatten(2, self.sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.images:
            return x
        return (x.movedim(-1, 2) if self.turned else x).flatten(2)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        if not self.images:
            return slope
        return slope.unflatten(2, self.first).movedim(2, -1) if self.turned else slope.unflatten(2, self.sizes)


class StackedChannel(StackedLayer):
    """Adds the channel that a convolution expects: `[R, B, F]` becomes an image of height 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :, None, :, None]

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        return slope[:, :, 0, :, 0]


class StackedSame(Same, StackedLayer):
    """Returns its input."""


def _pair(size: int | tuple[int, ...], still: int | None) -> tuple[int, ...]:
    """Returns two numbers of one or two; for a signal, an image of height 1, the first is `height_value`."""
    given = size if isinstance(size, tuple) else (size,) if still is not None else (size, size)
    return given if still is None else (still, *given)
