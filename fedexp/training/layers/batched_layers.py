"""Batched passes of known layers for rows with their own entries, without autograd and vmap.

Data is `[R, B, H, W, C]`, channels last, or `[R, B, F]`; a signal is an image of height 1. A layer's entries are a view
`[R, O, I]` of the rows: a line an output, its bias last, so that a one behind the inputs adds it, and the gradients of
both come out of one product. Persistent tensors (borders of zeros, columns of ones) are made once, before a GPU
captures a step. Legend: R rows, B batch, H x W pixels, C channels, F features, O outputs, I entries a line.
"""

from dataclasses import dataclass

import torch
from torch import nn

from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.layers.batched_convolutions import ConvolutionImplementation
from fedexp.training.layers.manual_layers import ManualIdentity, ManualLayer

aten = torch.ops.aten


@dataclass(frozen=True)
class BatchedContext:
    """What a layer is built from: its `entries` and their `grads`, `[R, O, I]`, and the batch size.

    `needs_input_grad` says whether somebody needs the gradient at its input.
    """

    entries: torch.Tensor
    grads: torch.Tensor
    batch: int
    needs_input_grad: bool


class BatchedLayer(ManualLayer):
    """One layer of a chain; `output_buffer` is where the next layer wants its input, if it has a preference."""

    output_buffer: torch.Tensor | None = None

    @property
    def input_buffer(self) -> torch.Tensor | None:
        """A buffer in which its input `[R, B, ...]` needs no copy; None if there is none."""
        return None

    def output_buffer_for(self, x: torch.Tensor) -> torch.Tensor | None:
        """Returns the output buffer if its dtype is that of `x [R, B, ...]`, else None."""
        return self.output_buffer if self.output_buffer is not None and self.output_buffer.dtype == x.dtype else None


class BatchedLinear(BatchedLayer):
    """y = x W^T + b for `x [R, B, F]`."""

    def __init__(self, context: BatchedContext, *, bias: bool) -> None:
        self.entries, self.grads, self.needs_input_grad, self.bias = (
            context.entries,
            context.grads,
            context.needs_input_grad,
            bias,
        )
        self.x = context.entries.new_ones((len(context.entries), context.batch, context.entries.shape[2]))

    @property
    def input_buffer(self) -> torch.Tensor:
        return self.x[..., :-1] if self.bias else self.x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.data_ptr() != self.input_buffer.data_ptr():
            self.input_buffer.copy_(x)
        return torch.bmm(self.x, self.entries.transpose(1, 2))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        torch.bmm(grad.transpose(1, 2), self.x, out=self.grads)
        if not self.needs_input_grad:
            return grad
        return torch.bmm(grad, self.entries[..., :-1] if self.bias else self.entries)


class BatchedConvolution(BatchedLayer):
    """A convolution by one of the implementations in `batched_convolutions`."""

    def __init__(self, implementation: ConvolutionImplementation) -> None:
        self.implementation = implementation

    @property
    def input_buffer(self) -> torch.Tensor | None:
        return self.implementation.input_buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.implementation.forward(x)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return self.implementation.backward(grad)


class BatchedReLU(BatchedLayer):
    """max(x, 0), written to the output buffer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.clamp_min(x, 0, out=self.output_buffer_for(x))
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.threshold_backward.default(grad, self.y, 0)


class BatchedTanh(BatchedLayer):
    """tanh(x), written to the output buffer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.tanh(x, out=self.output_buffer_for(x))
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.tanh_backward.default(grad, self.y)


class BatchedPool(BatchedLayer):
    """Max pooling: the images of all rows are one batch."""

    def __init__(self, layer: nn.MaxPool1d | nn.MaxPool2d) -> None:
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        height_values = (1, 1, 0, 1) if isinstance(layer, nn.MaxPool1d) else (None,) * 4
        pairs = [_pair(size, height_value) for size, height_value in zip(sizes, height_values, strict=True)]
        self.settings = (*pairs, layer.ceil_mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x, self.rows = x.flatten(0, 1).permute(0, 3, 1, 2), len(x)
        y, self.index = aten.max_pool2d_with_indices.default(self.x, *self.settings)
        return y.permute(0, 2, 3, 1).contiguous().unflatten(0, (self.rows, -1))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.flatten(0, 1).permute(0, 3, 1, 2)
        grad_input = aten.max_pool2d_with_indices_backward.default(grad, self.x, *self.settings, self.index)
        return grad_input.permute(0, 2, 3, 1).contiguous().unflatten(0, (self.rows, -1))


class BatchedDropout(BatchedLayer):
    """Drops single values, or whole channels; drawn for `[R, B, C, H, W]`, as every other engine draws."""

    def __init__(self, layer: nn.Dropout | nn.Dropout2d, keyed_random: KeyedRandom, *, signals: bool) -> None:
        """`signals` says whether draws have the shape `[R, B, C, W]`."""
        self.keep, self.keyed_random, self.channels = 1 - layer.p, keyed_random, isinstance(layer, nn.Dropout2d)
        self.signals = signals

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], 1, 1, x.shape[-1]) if self.channels else x.shape
        noise = x.new_empty(shape)
        drawn = noise.movedim(-1, 2) if x.dim() == 5 else noise
        self.keyed_random.bernoulli(drawn.squeeze(3) if self.signals else drawn, self.keep)
        self.factor = noise.div_(self.keep)
        return x * self.factor

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * self.factor


class BatchedFlatten(BatchedLayer):
    """Flattens each example: as stored, or with the channels first as PyTorch does."""

    def __init__(self, shape: tuple[int, ...], *, channels_first: bool) -> None:
        """For examples of this shape, `[C, H, W]`, `[C, W]` or `[F]`."""
        channels, sides = shape[0], (1, *shape[1:])[-2:]
        self.images, self.channels_first = len(shape) > 1, channels_first
        self.channels_last_shape, self.channels_first_shape = (*sides, channels), (channels, *sides)

    @property
    def input_buffer(self) -> torch.Tensor | None:
        if self.output_buffer is None or self.channels_first or not self.images:
            return self.output_buffer if not self.images else None
        return self.output_buffer.unflatten(2, self.channels_last_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.images:
            return x
        return (x.movedim(-1, 2) if self.channels_first else x).flatten(2)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        if not self.images:
            return grad
        return (
            grad.unflatten(2, self.channels_first_shape).movedim(2, -1)
            if self.channels_first
            else grad.unflatten(2, self.channels_last_shape)
        )


class BatchedAddChannel(BatchedLayer):
    """Adds the channel that a convolution expects: `[R, B, F]` becomes an image of height 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :, None, :, None]

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad[:, :, 0, :, 0]


class BatchedIdentity(ManualIdentity, BatchedLayer):
    """Returns its input."""


def _pair(size: int | tuple[int, ...], height_value: int | None) -> tuple[int, ...]:
    """Returns two numbers of one or two; for a signal, an image of height 1, the first is `height_value`."""
    sizes = size if isinstance(size, tuple) else (size,) if height_value is not None else (size, size)
    return sizes if height_value is None else (height_value, *sizes)
