"""Per-example gradients of a layer, from the layer's inputs and the gradients at its outputs.

The gradient of a linear layer at one example is an outer product: its norm is the product of two norms, and a weighted
sum over examples is one matrix product, so that it need never be formed (Goodfellow 2015, arXiv 1510.01799). Those of
convolutions and of group normalisation are small and are formed. Legend: B examples, P entries of a layer, I inputs and
O outputs of a linear layer, T vectors of a sequence, C channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional as F


class LayerGradients(Protocol):
    """The gradients of B examples with respect to one layer's entries."""

    def squared_norms(self) -> torch.Tensor:
        """The square of every example's norm, `[B]`."""
        ...

    def weighted_sum(self, factor: torch.Tensor) -> torch.Tensor:
        """sum_b factor_b gradient_b for `factor [B]`: `[P]`, in the order of the layer's parameters."""
        ...


@dataclass(frozen=True)
class OuterProductGradients:
    """Per-example gradients of a linear layer as outer products: `inputs [B, I]`, `errors [B, O]`."""

    inputs: torch.Tensor
    errors: torch.Tensor
    bias: bool

    def squared_norms(self) -> torch.Tensor:
        return self.errors.square().sum(dim=1) * (self.inputs.square().sum(dim=1) + int(self.bias))

    def weighted_sum(self, factor: torch.Tensor) -> torch.Tensor:
        errors = self.errors * factor[:, None]
        weight = (errors.T @ self.inputs).reshape(-1)
        return torch.cat([weight, errors.sum(dim=0)]) if self.bias else weight


@dataclass(frozen=True)
class MaterialisedGradients:
    """Per-example gradients materialised as a matrix, `rows [B, P]`."""

    rows: torch.Tensor

    def squared_norms(self) -> torch.Tensor:
        return self.rows.square().sum(dim=1)

    def weighted_sum(self, factor: torch.Tensor) -> torch.Tensor:
        return factor @ self.rows


def linear_gradients(layer: nn.Module, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of a linear layer over vectors `[B, I]`, `[B, O]` or sequences `[B, T, I]`, `[B, T, O]`.

    The gradients of a layer over sequences are formed.
    """
    assert isinstance(layer, nn.Linear)
    bias = layer.bias is not None
    if inputs.dim() == 2:
        return OuterProductGradients(inputs, errors, bias)
    inputs, errors = inputs.flatten(1, -2), errors.flatten(1, -2)
    weight = (errors.transpose(1, 2) @ inputs).flatten(1)
    return MaterialisedGradients(torch.cat([weight, errors.sum(dim=1)], dim=1) if bias else weight)


def convolution_gradients(layer: nn.Module, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of a 1-D or 2-D convolution, as a linear layer over all patches of the input.

    `inputs [B, C, ...]` and `errors [B, O, ...]`, with O output channels.
    """
    assert isinstance(layer, nn.Conv1d | nn.Conv2d)
    assert not isinstance(layer.padding, str)
    kernel, padding, dilation, stride = layer.kernel_size, layer.padding, layer.dilation, layer.stride
    if isinstance(layer, nn.Conv1d):
        inputs = inputs.unsqueeze(-2)
        kernel, padding, dilation, stride = (1, *kernel), (0, *padding), (1, *dilation), (1, *stride)
    patches = F.unfold(inputs, kernel, dilation, padding, stride)
    errors = errors.flatten(2)
    weight = (errors @ patches.transpose(1, 2)).flatten(1)
    return MaterialisedGradients(weight if layer.bias is None else torch.cat([weight, errors.sum(dim=2)], dim=1))


def group_norm_gradients(layer: nn.Module, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of each channel's scale and shift; `inputs` and `errors` are `[B, C, ...]`."""
    assert isinstance(layer, nn.GroupNorm)
    normal = F.group_norm(inputs, layer.num_groups, eps=layer.eps)
    scale, shift = (errors * normal).flatten(2).sum(dim=2), errors.flatten(2).sum(dim=2)
    return MaterialisedGradients(torch.cat([scale, shift], dim=1))


GradientRule = Callable[[nn.Module, torch.Tensor, torch.Tensor], LayerGradients]


def gradient_rule(layer: nn.Module) -> GradientRule | None:
    """Returns the function that computes a layer's per-example gradients; None if none is known."""
    if type(layer) is nn.Linear:
        return linear_gradients
    if type(layer) in (nn.Conv1d, nn.Conv2d):
        is_supported = layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return convolution_gradients if is_supported else None
    return group_norm_gradients if type(layer) is nn.GroupNorm and layer.affine else None
