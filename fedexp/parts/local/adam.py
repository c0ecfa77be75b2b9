"""Local Adam, its moments reset in every round (the selection thesis trains so: E=5, B=20, lr 0.001).

Weight decay is coupled, as in torch.optim.Adam.
"""

from typing import Annotated

import torch

from fedexp.parts import LocalRule, Positive, Range, adam_step

Beta = Annotated[float, Range(0, 1, high_open=True)]


class Adam(LocalRule):
    """Adam (Kingma & Ba 2015)."""

    is_gradient_sum = False

    lr: Annotated[float, Positive] = 0.001
    beta1: Beta = 0.9
    beta2: Beta = 0.999
    eps: Annotated[float, Positive] = 1e-8
    weight_decay: Annotated[float, Range(0)] = 0.0

    @property
    def slots(self) -> int:
        return 2

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return grad.add(w, alpha=self.weight_decay) if self.weight_decay else grad

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        adam_step(w, grad, slots, step, (self.lr, self.beta1, self.beta2, self.eps), active)
