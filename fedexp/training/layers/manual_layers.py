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

from fedexp.training.client.keyed_random import KeyedRandom

aten = torch.ops.aten


@dataclass(frozen=True)
class LayerContext:
    """What a layer needs to know of its position in a chain.

    `grads` are the views that take the gradients of its entries, by name. `dims` is the number of dimensions of its
    input. `needs_input_grad` says whether somebody needs the gradient at its input, `can_overwrite_input` whether
    nobody needs the input again. `keyed_random` is what dropout is drawn from, if the network draws at all.
    """

    grads: dict[str, torch.Tensor]
    dims: int
    needs_input_grad: bool
    can_overwrite_input: bool
    keyed_random: KeyedRandom | None


class ManualLayer(ABC):
    """A layer of a chain with manual forward and backward passes."""

    can_overwrite_output = True  # whether its output is a tensor of its own, which it does not need again

    def dims(self, dims: int) -> int:
        """Returns the number of dimensions of its output, given that of its input."""
        return dims

    @abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's output for `x [B, ...]`."""

    @abstractmethod
    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        """Returns the input gradient `[B, ...]`, given the output gradient `[B, ...]`; arbitrary if not needed."""


class ManualLinear(ManualLayer):
    """y = x W^T + b for `x [B, I]`."""

    def __init__(self, layer: nn.Linear, context: LayerContext) -> None:
        self.weight, self.needs_input_grad = layer.weight.detach(), context.needs_input_grad
        self.transposed_weight, self.bias = self.weight.t(), None if layer.bias is None else layer.bias.detach()
        self.weight_grad, self.bias_grad = context.grads["weight"], context.grads.get("bias")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return (
            torch.mm(x, self.transposed_weight)
            if self.bias is None
            else torch.addmm(self.bias, x, self.transposed_weight)
        )

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        torch.mm(grad.t(), self.x, out=self.weight_grad)
        if self.bias_grad is not None:
            torch.sum(grad, 0, out=self.bias_grad)
        return torch.mm(grad, self.weight) if self.needs_input_grad else grad


class ManualConvolution(ManualLayer):
    """A convolution in one or two dimensions."""

    def __init__(self, layer: nn.Conv1d | nn.Conv2d, context: LayerContext) -> None:
        self.weight, self.bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        self.weight_grad, self.bias_grad = context.grads["weight"], context.grads.get("bias")
        assert not isinstance(layer.padding, str)
        output_padding = [0] * (context.dims - 2)
        self.settings = (layer.stride, layer.padding, layer.dilation, False, output_padding, layer.groups)
        self.output_mask = [context.needs_input_grad, True, self.bias is not None]
        self.bias_sizes = None if self.bias is None else [len(self.bias)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return torch.convolution(x, self.weight, self.bias, *self.settings)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad_input, weight, bias = aten.convolution_backward.default(
            grad, self.x, self.weight, self.bias_sizes, *self.settings, self.output_mask
        )
        self.weight_grad.copy_(weight)
        if self.bias_grad is not None:
            self.bias_grad.copy_(bias)
        return grad if grad_input is None else grad_input


class ManualReLU(ManualLayer):
    """max(x, 0)."""

    can_overwrite_output = False

    def __init__(self, context: LayerContext) -> None:
        self.relu: Callable[[torch.Tensor], torch.Tensor] = torch.relu_ if context.can_overwrite_input else torch.relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = self.relu(x)
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.threshold_backward.default(grad, self.y, 0)  # in place it would lie otherwise in memory


class ManualTanh(ManualLayer):
    """tanh(x)."""

    can_overwrite_output = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.tanh(x)
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.tanh_backward.default(grad, self.y)


class ManualPool(ManualLayer):
    """Max pooling of images; signals `[B, C, length]` are images of height 1, as in PyTorch."""

    def __init__(self, layer: nn.MaxPool1d | nn.MaxPool2d) -> None:
        self.signals = isinstance(layer, nn.MaxPool1d)
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        if self.signals:
            sizes = tuple(
                (height_value, *_as_tuple(size)) for height_value, size in zip((1, 1, 0, 1), sizes, strict=True)
            )
        self.settings = (*map(_as_tuple, sizes), layer.ceil_mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.unsqueeze(2) if self.signals else x
        y, self.index = aten.max_pool2d_with_indices.default(self.x, *self.settings)
        return y.squeeze(2) if self.signals else y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.unsqueeze(2) if self.signals else grad
        grad = aten.max_pool2d_with_indices_backward.default(grad, self.x, *self.settings, self.index)
        return grad.squeeze(2) if self.signals else grad


class ManualDropout(ManualLayer):
    """Drops single values, or whole channels, and scales up the others."""

    def __init__(self, layer: nn.Dropout | nn.Dropout2d, keyed_random: KeyedRandom) -> None:
        self.keep, self.keyed_random, self.channels = 1 - layer.p, keyed_random, isinstance(layer, nn.Dropout2d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = x.new_empty((*x.shape[:2], 1, 1)) if self.channels else torch.empty_like(x)
        self.factor = self.keyed_random.bernoulli(noise, self.keep).div_(self.keep)
        return x * self.factor

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * self.factor


class ManualIdentity(ManualLayer):
    """Returns its input."""

    can_overwrite_output = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad


class ManualFlatten(ManualLayer):
    """Flattens each example."""

    can_overwrite_output = False

    def dims(self, dims: int) -> int:
        return 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.shape = x.shape
        return x.flatten(1)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.reshape(self.shape)


class ManualAddChannel(ManualLayer):
    """Adds the channel that a convolution expects."""

    can_overwrite_output = False

    def dims(self, dims: int) -> int:
        return dims + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(1)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.squeeze(1)


def _as_tuple(size: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return tuple(size) if isinstance(size, tuple | list) else (size,)
