"""Per-example gradients of one layer, of which norms and weighted sums are asked.

Legend: B examples, P entries of a layer, I inputs and O outputs of a linear layer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch


class LayerGradients(Protocol):
    """The gradients of B examples with respect to one layer's entries."""

    def squared_norms(self) -> torch.Tensor:
        """The square of every example's norm, `[B]`."""
        ...

    def weighted_sum(self, factor: torch.Tensor) -> torch.Tensor:
        """sum_b factor_b gradient_b for `factor [B]`: `[P]`, in the order of the layer's parameters."""
        ...


GradientRule = Callable[[Any, torch.Tensor, torch.Tensor], LayerGradients]  # of a layer, inputs, output gradients


@dataclass(frozen=True)
class OuterProductGradients:
    """Per-example gradients as outer products of `inputs [B, I]` and `errors [B, O]`, which are never formed.

    The norm is the product of two norms, and a weighted sum over examples is one matrix product (Goodfellow 2015, arXiv
    1510.01799).
    """

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
