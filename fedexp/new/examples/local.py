"""How a client trains in its turn: write here how its gradients become steps.

As it stands, plain SGD with weight decay. `cost` says what the rule makes of the loss, `direction` what is descended,
`update` how; `begin` and `finish` what is trained from and what is sent.
"""

from typing import Annotated

import torch

from fedexp.parts import LocalRule, Range


class OwnLocalRule(LocalRule):
    """Adds `decay` times the model to its gradient."""

    decay: Annotated[float, Range(0)] = 0.0

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return grad + self.decay * w

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        w.sub_(grad * (self.lr if active is None else self.lr * active))
