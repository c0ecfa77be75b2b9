"""Passes under autocast: products in bfloat16, with entries that are rounded at every step.

All other layers compute in whatever they are given, and their own entries stay as they are. Legend: R rows, B batch, O
outputs, I entries a line.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, ManualContext

Tensors = list[torch.Tensor]
ALIGNMENT = 8  # bfloat16 numbers in 16 bytes, which a GPU's tensor cores load at once from lines of a multiple of that
MAX_PADDING = 1 / 8  # of a line: reading more than that in vain takes longer than reading what is not aligned


def padded_length(entries: int) -> int:
    """Returns how many numbers a line of so many entries takes in memory: a multiple of 16 bytes unless that is long.

    With the bias behind the weights, a line is mostly one number too long: 785 entries take 792, but 10 take 10.
    """
    padded = -(-entries // ALIGNMENT) * ALIGNMENT
    return padded if padded - entries <= entries * MAX_PADDING else entries


def rounded_lines(entries: torch.Tensor) -> torch.Tensor:
    """Returns a place in bfloat16 for entries `[R, O, I]`: a view of zeros that may have longer lines."""
    rows, outputs, length = entries.shape
    zeros = torch.zeros(rows, outputs, padded_length(length), dtype=torch.bfloat16, device=entries.device)
    return zeros[..., :length]


class Bfloat16Pass(LayerPass):
    """A linear or convolution layer that multiplies in bfloat16, with copies of its entries and of their gradients."""

    bf16_layer: LayerPass  # made from the copies

    def __init__(self, entries: Tensors, grads: Tensors, allocate: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """`entries` and `grads` are any tensors, in the same order; `allocate` makes zeros for the copy of one."""
        self.entries, self.grads = entries, grads
        self.rounded_entries, self.rounded_grads = [*map(allocate, entries)], [*map(allocate, grads)]

    @property
    def input_buffer(self) -> torch.Tensor | None:
        return self.bf16_layer.input_buffer

    def release(self) -> None:
        self.bf16_layer.release()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.input_dtype = x.dtype
        for rounded, entry in zip(self.rounded_entries, self.entries, strict=True):
            rounded.copy_(entry)
        return self.bf16_layer.forward(x.to(torch.bfloat16))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad_input = self.bf16_layer.backward(grad.to(torch.bfloat16))
        for entry_grad, rounded_grad in zip(self.grads, self.rounded_grads, strict=True):
            entry_grad.copy_(rounded_grad)
        return grad_input.to(self.input_dtype)


class ManualBfloat16(Bfloat16Pass):
    """The layer of one row."""

    def __init__(
        self, layer: nn.Module, context: ManualContext, make: Callable[[Any, ManualContext], LayerPass]
    ) -> None:
        names = [name for name, _ in layer.named_parameters()]
        entries, grads = [entry.detach() for entry in layer.parameters()], [context.grads[name] for name in names]
        super().__init__(entries, grads, partial(torch.zeros_like, dtype=torch.bfloat16))
        bf16_module = copy.deepcopy(layer)
        for name, rounded in zip(names, self.rounded_entries, strict=True):
            setattr(bf16_module, name, nn.Parameter(rounded))
        self.bf16_layer = make(bf16_module, replace(context, grads=dict(zip(names, self.rounded_grads, strict=True))))


class BatchedBfloat16(Bfloat16Pass):
    """The layer of several rows."""

    def __init__(self, context: BatchedContext, make: Callable[[BatchedContext], LayerPass]) -> None:
        super().__init__([context.entries], [context.grads], rounded_lines)
        self.bf16_layer = make(replace(context, entries=self.rounded_entries[0], grads=self.rounded_grads[0]))


class ToFloat32(LayerPass):
    """Casts the outputs of a bfloat16 network to float32, of one row or of several."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.input_dtype = x.dtype
        return x.float()

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.to(self.input_dtype)
