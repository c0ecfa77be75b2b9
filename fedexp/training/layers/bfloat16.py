"""Passes under autocast: products in bfloat16, with entries that are rounded at every step.

All other layers compute in whatever they are given, and their own entries stay as they are. Legend: B batch.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, ManualContext

Tensors = list[torch.Tensor]


class Bfloat16Copies:
    """Bfloat16 copies of entries and of their gradients."""

    def __init__(self, entries: Tensors, grads: Tensors) -> None:
        """`entries` and `grads` are any tensors, in the same order."""
        self.entries, self.grads = entries, grads
        self.rounded_entries = [torch.zeros_like(entry, dtype=torch.bfloat16) for entry in entries]
        self.rounded_grads = [torch.zeros_like(grad, dtype=torch.bfloat16) for grad in grads]

    def round_input(self, x: torch.Tensor) -> torch.Tensor:
        """Rounds the entries and returns the rounded input (any shape)."""
        self.input_dtype = x.dtype
        for rounded, entry in zip(self.rounded_entries, self.entries, strict=True):
            rounded.copy_(entry)
        return x.to(torch.bfloat16)

    def widen_grads(self, grad_input: torch.Tensor) -> torch.Tensor:
        """Copies the gradients back; returns the input gradient (any shape) in the input's precision."""
        for grad, rounded_grad in zip(self.grads, self.rounded_grads, strict=True):
            grad.copy_(rounded_grad)
        return grad_input.to(self.input_dtype)


class ManualBfloat16(LayerPass):
    """A linear or convolution layer that multiplies in bfloat16."""

    def __init__(
        self, layer: nn.Module, context: ManualContext, make: Callable[[Any, ManualContext], LayerPass]
    ) -> None:
        names = [name for name, _ in layer.named_parameters()]
        entries = [entry.detach() for entry in layer.parameters()]
        self.copies, bf16_module = (
            Bfloat16Copies(entries, [context.grads[name] for name in names]),
            copy.deepcopy(layer),
        )
        for name, rounded in zip(names, self.copies.rounded_entries, strict=True):
            setattr(bf16_module, name, nn.Parameter(rounded))
        rounded_grads = dict(zip(names, self.copies.rounded_grads, strict=True))
        self.bf16_layer = make(bf16_module, replace(context, grads=rounded_grads))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bf16_layer.forward(self.copies.round_input(x))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return self.copies.widen_grads(self.bf16_layer.backward(grad.to(torch.bfloat16)))


class ToFloat32(LayerPass):
    """Casts the outputs of a bfloat16 network to float32, of one row or of several."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.input_dtype = x.dtype
        return x.float()

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.to(self.input_dtype)


class BatchedBfloat16(LayerPass):
    """A linear or convolution layer of several rows that multiplies in bfloat16."""

    def __init__(self, context: BatchedContext, make: Callable[[BatchedContext], LayerPass]) -> None:
        self.copies = Bfloat16Copies([context.entries], [context.grads])
        self.bf16_layer = make(
            replace(context, entries=self.copies.rounded_entries[0], grads=self.copies.rounded_grads[0])
        )

    @property
    def input_buffer(self) -> torch.Tensor | None:
        return self.bf16_layer.input_buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bf16_layer.forward(self.copies.round_input(x))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return self.copies.widen_grads(self.bf16_layer.backward(grad.to(torch.bfloat16)))
