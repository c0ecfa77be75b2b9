"""Batched forward and backward passes of networks that are chains of supported layers, for rows with their own entries.

The rows' entries lie in the order in which the passes want them, each layer's `[O, I]` together, and their gradients
beside them in the same order: no step moves them. All else is left to vmap. Legend: R rows, B batch, P trainable
entries, D entries of a row, K outputs.
"""

from functools import partial
from itertools import pairwise

import torch

from fedexp.core.values import Layout
from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.layers.batched_plan import LayerPlan
from fedexp.training.layers.bfloat16 import BatchedBfloat16, ToFloat32
from fedexp.training.layers.layer_pass import BatchedContext, LayerPass


class BatchedPass:
    """The batched passes of a network's layers, forwards and backwards, on the entries of one bucket's rows."""

    def __init__(self, layers: list[LayerPass], first: int) -> None:
        """`first` is the position of the first layer with entries; gradients before it are not needed."""
        self.layers = layers
        self.share_readers = [layer for layer in layers if layer.needs_share]
        self.backward_steps = [layer.backward for layer in reversed(layers[first:])]
        for layer, following in reversed([*pairwise(layers)]):
            layer.output_buffer = following.input_buffer

    def forward(self, x: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        """Returns the outputs `[R, B, K]` for `x [R, B, ...]` (images channels last), in training mode.

        `share [R, B]` is the weight of an example in the mean over its batch, 0 where there is none.
        """
        for layer in self.share_readers:
            layer.share = share
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

    def build(self, plan: LayerPlan, layout: Layout, keyed_random: KeyedRandom | None) -> BatchedPass:
        """Returns the passes of all layers; dropout draws from `keyed_random`."""
        names, sizes = (values[layout.trainable :] for values in (layout.names, layout.sizes))
        buffers = dict(zip(names, self.w[:, layout.parameters :].split(sizes, dim=1), strict=True))
        layers: list[LayerPass] = []
        begin, first = 0, None
        for planned in plan.layers:
            shape = (0, 0) if planned.entry_positions is None else tuple(planned.entry_positions.shape)
            columns = slice(begin, begin + shape[0] * shape[1])
            context = BatchedContext(
                entries=self.w[:, columns].view(len(self.w), *shape),
                grads=self.gradient[:, columns].view(len(self.w), *shape),
                buffers={name: buffers[planned.full_name(name)] for name, _ in planned.layer.named_buffers()},
                batch=self.batch,
                memory_mb=self.memory_mb,
                needs_input_grad=first is not None,
                keyed_random=keyed_random,
            )
            first = len(layers) if columns.stop > begin and first is None else first
            begin, make = columns.stop, partial(planned.kind.batched, planned)
            layers.append(BatchedBfloat16(context, make) if plan.bf16 and planned.kind.in_bfloat16 else make(context))
        assert first is not None
        return BatchedPass([*layers, *([ToFloat32()] if plan.bf16 else [])], first)
