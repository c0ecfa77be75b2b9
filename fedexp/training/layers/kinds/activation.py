"""Activation functions, value by value. Of several rows they are written to where the next layer wants its input."""

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.training.layers.kind import LayerKind, evaluate_as_is
from fedexp.training.layers.layer_pass import LayerPass, ManualContext

aten = torch.ops.aten


class ManualReLU(LayerPass):
    """max(x, 0) of one row."""

    can_overwrite_output = False

    def __init__(self, layer: nn.ReLU, context: ManualContext) -> None:
        self.relu = torch.relu_ if context.can_overwrite_input else torch.relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = self.relu(x)
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.threshold_backward.default(grad, self.y, 0)  # in place it would lie otherwise in memory


class BatchedReLU(LayerPass):
    """max(x, 0) of several rows."""

    saved = ("y",)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.clamp_min(x, 0, out=self.output_buffer_for(x))
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.threshold_backward.default(grad, self.y, 0)


class TanhPass(LayerPass):
    """tanh(x) of one row or of several."""

    can_overwrite_output = False
    saved = ("y",)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.y = torch.tanh(x, out=self.output_buffer_for(x))
        return self.y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.tanh_backward.default(grad, self.y)


class GELUPass(LayerPass):
    """x times the normal distribution's share below x, of one row or of several."""

    saved = ("x",)

    def __init__(self, layer: nn.GELU) -> None:
        self.approximate = layer.approximate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return F.gelu(x, approximate=self.approximate)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return aten.gelu_backward.default(grad, self.x, approximate=self.approximate)


KINDS = (
    LayerKind(
        types=(nn.ReLU,), manual=ManualReLU, batched=lambda *_: BatchedReLU(), evaluator=lambda _: evaluate_as_is
    ),
    LayerKind(types=(nn.Tanh,), manual=lambda *_: TanhPass(), batched=lambda *_: TanhPass()),
    LayerKind(
        types=(nn.GELU,),
        manual=lambda layer, _: GELUPass(layer),
        batched=lambda planned, _: GELUPass(planned.layer),
        evaluator=lambda _: evaluate_as_is,
    ),
)
