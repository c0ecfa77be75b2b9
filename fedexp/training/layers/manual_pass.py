"""Manual forward and backward passes, without autograd, of networks that are chains of known layers.

The gradient goes straight into a flat row. Everything else is left to autograd: other networks, unusual settings of
known layers, and subclasses of them, which may do anything. A max pool behind a ReLU is taken before it: the two
commute, gradients included, and ReLU then has a fraction of the work.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from fedexp.parts.layers import AddChannel, BatchNorm
from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.client.precision import computes_in_bf16
from fedexp.training.layers.lowered_layers import PRODUCTS, ManualBfloat16, ManualToFloat32
from fedexp.training.layers.manual_layers import (
    LayerContext,
    ManualAddChannel,
    ManualConvolution,
    ManualDropout,
    ManualFlatten,
    ManualIdentity,
    ManualLayer,
    ManualLinear,
    ManualPool,
    ManualReLU,
    ManualTanh,
)
from fedexp.training.layers.manual_norms import ManualBatchNorm, ManualGroupNorm
from fedexp.training.layers.sequential import NamedLayer, layer_chain


class ManualPass:
    """The manual layers of a network, forwards and backwards. A batch needs at least `min_batch` examples."""

    def __init__(self, layers: Sequence[ManualLayer], first: int) -> None:
        """`first` is the position of the first layer with entries; gradients before it are not needed."""
        self.forward_steps = [layer.forward for layer in layers]
        self.backward_steps = [layer.backward for layer in reversed(layers[first:])]
        self.min_batch = 2 if any(isinstance(layer, ManualBatchNorm) for layer in layers) else 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the outputs `[B, *outputs]` for `x [B, *shape]`, in training mode."""
        for step in self.forward_steps:
            x = step(x)
        return x

    def backward(self, grad: torch.Tensor) -> None:
        """Writes the gradient of the entries into the flat row, given that at the outputs, `[B, *outputs]`."""
        for step in self.backward_steps:
            grad = step(grad)


def manual_pass(
    network: nn.Module, grads: dict[str, torch.Tensor], dims: int, keyed_random: KeyedRandom | None
) -> ManualPass | None:
    """Returns the manual passes of a network; None if one of its layers is not supported.

    The entries of the network must stay where they are. `grads` are the views that take their gradients, by name;
    inputs have `dims` dimensions, `[B, ...]`; dropout is drawn from `keyed_random`.
    """
    chain, bf16 = layer_chain(network, allow_bf16=True), computes_in_bf16(network)
    layers: list[ManualLayer] = []
    first: int | None = None
    for name, layer in pool_before_relu(chain or []):
        entry_grads = {entry: grads[f"{name}.{entry}" if name else entry] for entry, _ in layer.named_parameters()}
        context = LayerContext(
            entry_grads, dims, first is not None, bool(layers) and layers[-1].can_overwrite_output, keyed_random
        )
        manual_layer = MAKERS[type(layer)](layer, context) if type(layer) in MAKERS else None
        if manual_layer is None:
            return None
        if bf16 and isinstance(layer, PRODUCTS):
            manual_layer = ManualBfloat16(layer, context, MAKERS[type(layer)])
        first = len(layers) if entry_grads and first is None else first
        dims = manual_layer.dims(dims)
        layers.append(manual_layer)
    return None if first is None else ManualPass([*layers, *([ManualToFloat32()] if bf16 else [])], first)


def pool_before_relu(chain: Sequence[NamedLayer]) -> list[NamedLayer]:
    """Returns the chain with each max pool moved before the ReLU that it follows."""
    layers = list(chain)
    for position in range(1, len(layers)):
        if type(layers[position][1]) in (nn.MaxPool1d, nn.MaxPool2d) and type(layers[position - 1][1]) is nn.ReLU:
            layers[position - 1 : position + 1] = reversed(layers[position - 1 : position + 1])
    return layers


def _convolution(layer: nn.Conv1d | nn.Conv2d, context: LayerContext) -> ManualLayer | None:
    usual = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return ManualConvolution(layer, context) if usual and context.dims == len(layer.kernel_size) + 2 else None


def _pool(layer: nn.MaxPool1d | nn.MaxPool2d, context: LayerContext) -> ManualLayer | None:
    dims = 3 if isinstance(layer, nn.MaxPool1d) else 4
    return ManualPool(layer) if context.dims == dims and not layer.return_indices else None


def _norm(layer: BatchNorm, context: LayerContext) -> ManualLayer | None:
    return (
        ManualBatchNorm(layer, context)
        if layer.affine and layer.track_running_stats and layer.momentum == layer.step and context.dims == 4
        else None
    )


def _group_norm(layer: nn.GroupNorm, context: LayerContext) -> ManualLayer | None:
    return ManualGroupNorm(layer, context) if layer.affine and context.dims > 2 else None


def _dropout(layer: nn.Dropout | nn.Dropout2d, context: LayerContext) -> ManualLayer | None:
    if layer.p == 0:
        return ManualIdentity()
    images = isinstance(layer, nn.Dropout) or context.dims == 4
    return (
        ManualDropout(layer, context.keyed_random)
        if layer.p < 1 and images and context.keyed_random is not None
        else None
    )


def _flatten(layer: nn.Flatten, _: LayerContext) -> ManualLayer | None:
    return ManualFlatten() if (layer.start_dim, layer.end_dim) == (1, -1) else None


Maker = Callable[[Any, LayerContext], ManualLayer | None]
MAKERS: dict[type[nn.Module], Maker] = {
    nn.Linear: lambda layer, context: ManualLinear(layer, context) if context.dims == 2 else None,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.ReLU: lambda _, context: ManualReLU(context),
    nn.Tanh: lambda *_: ManualTanh(),
    nn.MaxPool1d: _pool,
    nn.MaxPool2d: _pool,
    BatchNorm: _norm,
    nn.GroupNorm: _group_norm,
    nn.Dropout: _dropout,
    nn.Dropout2d: _dropout,
    nn.Flatten: _flatten,
    nn.Identity: lambda *_: ManualIdentity(),
    AddChannel: lambda *_: ManualAddChannel(),
}
