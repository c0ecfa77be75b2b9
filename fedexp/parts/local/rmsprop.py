"""Local RMSprop, its mean of squares fresh in every round.

Tieleman & Hinton 2012 (Coursera lecture 6.5), as torch.optim.RMSprop without momentum: v <- alpha v + (1 - alpha) g^2,
w <- w - lr g / (sqrt(v) + eps). There is no correction of the start, unlike Adam's. Weight decay is coupled.
"""

from typing import Annotated

import torch

from fedexp.parts import LocalRule, Positive, Range, descend


class RMSprop(LocalRule):
    """RMSprop; `alpha` is how much of the mean of squares stays at a step (Keras calls it rho and takes 0.9)."""

    is_gradient_sum = False

    lr: Annotated[float, Positive] = 0.001
    alpha: Annotated[float, Range(0, 1, high_open=True)] = 0.99
    eps: Annotated[float, Positive] = 1e-8
    weight_decay: Annotated[float, Range(0)] = 0.0

    @property
    def slots(self) -> int:
        return 1

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return grad.add(w, alpha=self.weight_decay) if self.weight_decay else grad

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        square = slots[0].mul_(self.alpha).addcmul_(grad, grad, value=1 - self.alpha)
        descend(w, grad / square.sqrt().add_(self.eps), self.lr, active)
