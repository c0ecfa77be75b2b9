"""Layers that change how values are arranged, and the one that changes nothing.

Legend: R rows, G rows, B batch, H x W pixels, C channels, F features.
"""

import math

import torch
from torch import nn

from fedexp.parts.layers import AddChannel
from fedexp.training.layers.kind import Activations, Entries, LayerKind, PlannedLayer
from fedexp.training.layers.layer_pass import LayerPass


class ManualFlatten(LayerPass):
    """Flattens `[B, ...]`."""

    can_overwrite_output = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.shape = x.shape
        return x.flatten(1)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.reshape(self.shape)


class BatchedFlatten(LayerPass):
    """Flattens `[R, B, H, W, C]`: as stored, or with the channels first as PyTorch does."""

    def __init__(self, planned: PlannedLayer) -> None:
        channels, sides = planned.shape[0], (1, *planned.shape[1:])[-2:]
        self.channels_first = planned.channels_first
        self.channels_last_shape, self.channels_first_shape = (*sides, channels), (channels, *sides)

    @property
    def input_buffer(self) -> torch.Tensor | None:
        if self.output_buffer is None or self.channels_first:
            return None
        return self.output_buffer.unflatten(2, self.channels_last_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.movedim(-1, 2) if self.channels_first else x).flatten(2)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return (
            grad.unflatten(2, self.channels_first_shape).movedim(2, -1)
            if self.channels_first
            else grad.unflatten(2, self.channels_last_shape)
        )


def evaluate_flatten(_layer: nn.Module, _entries: Entries, flow: Activations, rows: int) -> Activations:
    """Flattens each example, for each row if the rows' values differ."""
    if flow.form != "channels":
        return Activations(flow.x.flatten(1 if flow.form == "shared" else 2), flow.form)
    return Activations(flow.x.reshape(len(flow.x), rows, -1).movedim(1, 0), "stacked")


def evaluate_add_channel(_layer: nn.Module, _entries: Entries, flow: Activations, _rows: int) -> Activations:
    """Adds the channel; of rows whose values differ, each row's is one of the channels."""
    return Activations(flow.x.movedim(0, 1), "channels") if flow.form == "stacked" else Activations(flow.x.unsqueeze(1))


class AddChannelPass(LayerPass):
    """`[B, F]` becomes a signal `[B, 1, F]`, and `[R, B, F]` an image `[R, B, 1, F, 1]`."""

    can_overwrite_output = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(1) if x.dim() == 2 else x[:, :, None, :, None]

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.squeeze(1) if grad.dim() == 3 else grad[:, :, 0, :, 0]


class IdentityPass(LayerPass):
    """Returns its input, of one row or of several."""

    can_overwrite_output = False

    @property
    def input_buffer(self) -> torch.Tensor | None:
        return self.output_buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad


KINDS = (
    LayerKind(
        types=(nn.Flatten,),
        manual=lambda *_: ManualFlatten(),
        batched=lambda planned, _: BatchedFlatten(planned) if len(planned.shape) > 1 else IdentityPass(),
        supports=lambda layer, _: (layer.start_dim, layer.end_dim) == (1, -1),
        output_shape=lambda _, shape: (math.prod(shape),),
        evaluator=lambda _: evaluate_flatten,
        flattens=True,
    ),
    LayerKind(
        types=(AddChannel,),
        manual=lambda *_: AddChannelPass(),
        batched=lambda *_: AddChannelPass(),
        supports=lambda _, shape: len(shape) == 1,
        output_shape=lambda _, shape: (1, *shape),
        evaluator=lambda _: evaluate_add_channel,
    ),
    LayerKind(types=(nn.Identity,), manual=lambda *_: IdentityPass(), batched=lambda *_: IdentityPass()),
)
