"""Local SGD: w <- w - lr * gradient over mini-batches (McMahan et al. 2017, ClientUpdate).

A client with n examples takes `epochs * ceil(n / batch_size)` steps (floor with `drop_last`), or exactly `steps`.
Momentum starts from zero in each round; weight decay is coupled, as in torch.optim.SGD.
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from fedexp.core.part import Range
from fedexp.maths.optimizer_steps import sgd_step
from fedexp.parts.local.contract import LocalRule


@dataclass(frozen=True, kw_only=True)
class SGD(LocalRule):
    """Stochastic gradient descent with heavy-ball momentum."""

    momentum: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    weight_decay: Annotated[float, Range(0)] = 0.0

    @property
    def slots(self) -> int:
        return 1 if self.momentum else 0

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return grad.add(w, alpha=self.weight_decay) if self.weight_decay else grad

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        sgd_step(w, grad, slots[0] if self.momentum else None, self.lr, self.momentum, active)
