"""FedProx's local problem (Li et al. 2020, eq. 2): F_k(w) + mu/2 ||w - w_t||^2, solved by SGD steps.

The proximal term covers only the trainable entries, not BatchNorm's statistics.
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from fedexp.core.part import Range
from fedexp.parts.local.sgd import SGD


@dataclass(frozen=True, kw_only=True)
class Prox(SGD):
    """SGD with the gradient of the proximal term, mu (w - w_t), added."""

    mu: Annotated[float, Range(0)] = 0.01

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return super().direction(grad, w, anchor) + self.mu * (w - anchor)
