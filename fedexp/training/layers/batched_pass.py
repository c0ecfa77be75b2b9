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
from fedexp.parts.layers import AddChannel, BatchNorm
from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.layers.batched_convolutions import IMPLEMENTATIONS, Im2col, choose_implementation
from fedexp.training.layers.batched_layers import (
    BatchedAddChannel,
    BatchedContext,
    BatchedConvolution,
    BatchedDropout,
    BatchedFlatten,
    BatchedIdentity,
    BatchedLayer,
    BatchedLinear,
    BatchedPool,
    BatchedReLU,
    BatchedTanh,
)
from fedexp.training.layers.batched_norms import BatchedNorm, MaskedBatchNorm, make_group_norm
from fedexp.training.layers.batched_plan import LayerPlan, PlannedLayer
from fedexp.training.layers.lowered_layers import PRODUCTS, BatchedBfloat16, BatchedToFloat32


class BatchedPass:
    """The batched layers of a network, forwards and backwards, on the entries of one bucket's rows."""

    def __init__(self, layers: list[BatchedLayer], first: int) -> None:
        """`first` is the position of the first layer with entries; gradients before it are not needed."""
        self.layers = layers
        self.norms = [layer.norm for layer in layers if isinstance(layer, BatchedNorm)]
        self.backward_steps = [layer.backward for layer in reversed(layers[first:])]
        for layer, following in reversed([*pairwise(layers)]):
            layer.output_buffer = following.input_buffer

    @property
    def first_im2col(self) -> Im2col | None:
        """The im2col convolution of the first layer, if it is one."""
        first = self.layers[0]
        return (
            first.implementation
            if isinstance(first, BatchedConvolution) and isinstance(first.implementation, Im2col)
            else None
        )

    def forward(self, x: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        """Returns the outputs `[R, B, K]` for `x [R, B, ...]` (images channels last), in training mode.

        `share [R, B]` is the weight of an example in the mean over its batch, 0 where there is none.
        """
        for norm in self.norms:
            if isinstance(norm, MaskedBatchNorm):
                norm.share = share
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad: torch.Tensor) -> None:
        """Writes the gradients of the rows' entries, given those at the outputs, `[R, B, K]`."""
        for step in self.backward_steps:
            grad = step(grad)


class PassBuilder:
    """Builds a bucket's passes on its rows `w [R, D]`, in the plan's order, and their gradients `[R, P]`."""

    def __init__(self, w: torch.Tensor, gradient: torch.Tensor, batch: int, memory_mb: float) -> None:
        self.w, self.gradient, self.batch, self.memory_mb = w, gradient, batch, memory_mb
        self.keyed_random: KeyedRandom | None = None
        self.buffers: dict[str, torch.Tensor] = {}

    def build(self, plan: LayerPlan, layout: Layout, keyed_random: KeyedRandom | None) -> BatchedPass:
        """Returns the passes of all layers; dropout draws from `keyed_random`."""
        self.keyed_random, begin, sizes = keyed_random, layout.parameters, layout.sizes[layout.trainable :]
        for name, size in zip(layout.names[layout.trainable :], sizes, strict=True):
            self.buffers[name] = self.w[:, begin : begin + size]
            begin += size
        layers: list[BatchedLayer] = []
        begin, first = 0, None
        for planned_layer in plan.layers:
            size = 0 if planned_layer.entry_positions is None else planned_layer.entry_positions.numel()
            context = self._make_context(planned_layer, begin, first is not None)
            make = partial(self._make_layer, planned_layer)
            layers.append(
                BatchedBfloat16(context, make)
                if plan.bf16 and isinstance(planned_layer.layer, PRODUCTS)
                else make(context)
            )
            first = len(layers) - 1 if size and first is None else first
            begin += size
        assert first is not None
        return BatchedPass([*layers, *([BatchedToFloat32()] if plan.bf16 else [])], first)

    def _make_layer(self, planned_layer: PlannedLayer, context: BatchedContext) -> BatchedLayer:
        return MAKERS[type(planned_layer.layer)](planned_layer, context, self)

    def _make_context(self, planned_layer: PlannedLayer, begin: int, needs_input_grad: bool) -> BatchedContext:
        shape = (0, 0) if planned_layer.entry_positions is None else tuple(planned_layer.entry_positions.shape)
        columns = slice(begin, begin + shape[0] * shape[1])
        views = [
            rows[:, columns].unflatten(1, shape) if columns.stop > begin else rows[:, :0]
            for rows in (self.w, self.gradient)
        ]
        return BatchedContext(views[0], views[1], self.batch, needs_input_grad)


def _convolution(planned_layer: PlannedLayer, context: BatchedContext, builder: PassBuilder) -> BatchedLayer:
    implementation = IMPLEMENTATIONS[choose_implementation(planned_layer.spec, builder.batch, builder.memory_mb)]
    return BatchedConvolution(
        implementation(planned_layer.spec, context.entries, context.grads, context.batch, context.needs_input_grad)
    )


def _norm(planned_layer: PlannedLayer, context: BatchedContext, builder: PassBuilder) -> BatchedLayer:
    assert isinstance(planned_layer.layer, BatchNorm)
    mean, var = (
        builder.buffers[f"{planned_layer.name}.{buffer}".lstrip(".")] for buffer in ("running_mean", "running_var")
    )
    return BatchedNorm(context, MaskedBatchNorm(planned_layer.layer, (mean, var)))


def _dropout(planned_layer: PlannedLayer, _: BatchedContext, builder: PassBuilder) -> BatchedLayer:
    assert isinstance(planned_layer.layer, nn.Dropout | nn.Dropout2d)
    if planned_layer.layer.p == 0:
        return BatchedIdentity()
    assert builder.keyed_random is not None
    return BatchedDropout(planned_layer.layer, builder.keyed_random, signals=len(planned_layer.shape) == 2)


Maker = Callable[[Any, BatchedContext, PassBuilder], BatchedLayer]
MAKERS: dict[type[nn.Module], Maker] = {
    nn.Linear: lambda planned_layer, context, _: BatchedLinear(context, bias=planned_layer.layer.bias is not None),
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.ReLU: lambda *_: BatchedReLU(),
    nn.Tanh: lambda *_: BatchedTanh(),
    nn.MaxPool1d: lambda planned_layer, *_: BatchedPool(planned_layer.layer),
    nn.MaxPool2d: lambda planned_layer, *_: BatchedPool(planned_layer.layer),
    BatchNorm: _norm,
    nn.GroupNorm: lambda planned_layer, context, _: BatchedNorm(context, make_group_norm(planned_layer.layer)),
    nn.Dropout: _dropout,
    nn.Dropout2d: _dropout,
    nn.Flatten: lambda planned_layer, *_: BatchedFlatten(
        planned_layer.shape, channels_first=planned_layer.channels_first
    ),
    nn.Identity: lambda *_: BatchedIdentity(),
    AddChannel: lambda *_: BatchedAddChannel(),
}
