"""Dropout of single values or of whole channels. Legend: R rows, B batch, H x W pixels, C channels.

Masks are drawn in `training/client/keyed_random.py`, which takes the place of PyTorch's own under autograd.
"""

import torch
from torch import nn

from fedexp.training.layers.kind import LayerKind, PlannedLayer, evaluate_as_is
from fedexp.training.layers.kinds.flatten import IdentityPass
from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, ManualContext

Dropout = nn.Dropout | nn.Dropout2d


class ManualDropout(LayerPass):
    """Drops single values, or whole channels, of `[B, ...]`."""

    saved = ("factor",)

    def __init__(self, layer: Dropout, context: ManualContext | BatchedContext) -> None:
        assert context.keyed_random is not None
        self.keep, self.keyed_random = 1 - layer.p, context.keyed_random
        self.channels = isinstance(layer, nn.Dropout2d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = x.new_empty((*x.shape[:2], 1, 1)) if self.channels else torch.empty_like(x)
        self.factor = self.keyed_random.bernoulli(noise, self.keep).div_(self.keep)
        return x * self.factor

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * self.factor


class BatchedDropout(ManualDropout):
    """Drops values of `[R, B, H, W, C]`; drawn for `[R, B, C, H, W]`, as every other engine draws."""

    def __init__(self, planned: PlannedLayer, context: BatchedContext) -> None:
        super().__init__(planned.layer, context)
        self.signals = len(planned.shape) == 2  # then draws have the shape [R, B, C, W]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], 1, 1, x.shape[-1]) if self.channels else x.shape
        noise = x.new_empty(shape)
        drawn = noise.movedim(-1, 2) if x.dim() == 5 else noise
        self.keyed_random.bernoulli(drawn.squeeze(3) if self.signals else drawn, self.keep)
        self.factor = noise.div_(self.keep)
        return x * self.factor


KINDS = (
    LayerKind(
        types=(nn.Dropout, nn.Dropout2d),
        manual=lambda layer, context: ManualDropout(layer, context) if layer.p else IdentityPass(),
        batched=lambda planned, context: BatchedDropout(planned, context) if planned.layer.p else IdentityPass(),
        supports=lambda layer, shape: layer.p < 1 and (type(layer) is nn.Dropout or len(shape) == 3),
        evaluator=lambda _: evaluate_as_is,
    ),
)
