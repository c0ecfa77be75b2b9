"""FedProx's local problem (Li et al. 2020, arXiv 1812.06127, eq. 2): F_k(w) + mu/2 ||w - w_t||^2.

It is solved by steps of SGD, as in the paper's experiments, or of Adam or AdamW: the paper leaves the solver free.
The proximal term covers only the trainable entries, not BatchNorm's statistics.
"""

from typing import Annotated, ClassVar

import numpy as np
import torch

from fedexp.parts import Range, path_lengths
from fedexp.parts.local.any_optimizer import AnyOptimizer


class Prox(AnyOptimizer):
    """Steps with the gradient of the proximal term, mu (w - w_t), added."""

    adds_nothing_at: ClassVar = {"mu": 0.0}

    mu: Annotated[float, Range(0)] = 0.01

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return super().direction(grad, w, anchor) + self.mu * (w - anchor)

    def effective_steps(self, steps: np.ndarray) -> np.ndarray:
        return path_lengths(steps, self.momentum, self.nesterov, self.lr * self.mu)
