"""Residual sums: two branches of a network, one layer after another.

A residual sum becomes a chain of its own, `Fork, body, Swap, shortcut, Join`. The value that a branch does not need yet
waits in a `Branch`: in the forward pass the input for the shortcut and then the body's output for the sum, in the
backward pass the sum's gradient for the body and then the shortcut's input gradient for the sum of both. So a pass goes
through its layers one by one, with or without branches, and sums may lie inside each other.
"""

import torch
from torch import nn

from fedexp.parts.layers import Residual
from fedexp.training.layers.kind import LayerKind, Shape
from fedexp.training.layers.layer_pass import LayerPass
from fedexp.training.layers.sequential import NamedLayer


class Branch:
    """What waits until the other branch is done: its shape when passes are planned, its value when they run."""

    shape: Shape
    value: torch.Tensor


class Fork(nn.Module):
    """Where a network divides."""

    def __init__(self, branch: Branch) -> None:
        super().__init__()
        self.branch = branch


class Swap(Fork):
    """Where the body ends and the shortcut begins."""


class Join(Fork):
    """Where both are added."""


def residual_parts(layer: Residual) -> list[NamedLayer] | None:
    """Returns the layers of a sum in order; None if one writes to its input, which the other branch reads, too."""
    if any(getattr(module, "inplace", False) for module in layer.modules()):
        return None
    branch = Branch()
    body, shortcut = ("body", layer.body), ("shortcut", layer.shortcut)
    return [("fork", Fork(branch)), body, ("swap", Swap(branch)), shortcut, ("join", Join(branch))]


def fork_shape(layer: Fork, shape: Shape) -> Shape:
    """Notes the input's shape for the shortcut; returns the same."""
    layer.branch.shape = shape
    return shape


def swap_shape(layer: Swap, shape: Shape) -> Shape:
    """Notes the shape of the body's output for the sum; returns that of the shortcut's input."""
    layer.branch.shape, shape = shape, layer.branch.shape
    return shape


class ForkPass(LayerPass):
    """Keeps its input; adds up the gradients of both branches."""

    can_overwrite_output = False

    def __init__(self, branch: Branch) -> None:
        self.branch = branch

    def release(self) -> None:
        vars(self.branch).pop("value", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.branch.value = x
        return x

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return grad + self.branch.value


class SwapPass(ForkPass):
    """Keeps what comes and goes on with what was kept."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.branch.value, x = x, self.branch.value
        return x

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        return self.forward(grad)


class JoinPass(ForkPass):
    """body(x) + shortcut(x), of any two precisions."""

    can_overwrite_output = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.dtypes = self.branch.value.dtype, x.dtype
        return self.branch.value + x

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        self.branch.value, shortcut_grad = (grad.to(dtype) for dtype in self.dtypes)
        return shortcut_grad


COMPOSITES = {Residual: residual_parts}
KINDS = (
    LayerKind(
        types=(Fork,),
        manual=lambda layer, _: ForkPass(layer.branch),
        batched=lambda planned, _: ForkPass(planned.layer.branch),
        output_shape=fork_shape,
    ),
    LayerKind(
        types=(Swap,),
        manual=lambda layer, _: SwapPass(layer.branch),
        batched=lambda planned, _: SwapPass(planned.layer.branch),
        output_shape=swap_shape,
    ),
    LayerKind(
        types=(Join,),
        manual=lambda layer, _: JoinPass(layer.branch),
        batched=lambda planned, _: JoinPass(planned.layer.branch),
        supports=lambda layer, shape: shape == layer.branch.shape,
    ),
)
