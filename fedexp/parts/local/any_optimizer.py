"""Steps of SGD, Adam or AdamW, as `optimizer` says: for rules that change the objective and not the optimizer.

All start anew in each round. `weight_decay` is coupled but for AdamW.
"""

from typing import Literal

import torch

from fedexp.core.errors import ConfigError
from fedexp.parts.local.adam import Adam
from fedexp.parts.local.adamw import AdamW
from fedexp.parts.local.heavy_ball import HeavyBall

STEPS = {"sgd": HeavyBall, "adam": Adam, "adamw": AdamW}


class AnyOptimizer(HeavyBall, AdamW):
    """`momentum` and `nesterov` are SGD's, `beta1`, `beta2` and `eps` Adam's."""

    no_gradient_sum = (
        "with local.optimizer=adam or adamw makes updates that are no sums of gradients with known weights"
    )

    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"

    @property
    def is_gradient_sum(self) -> bool:
        return self.optimizer == "sgd"

    def check(self) -> None:
        super().check()
        if self.momentum and self.optimizer != "sgd":
            raise ConfigError(
                f"{type(self).__name__}.momentum must be 0 with optimizer={self.optimizer}, which has beta1, got "
                f"{self.momentum:g}; leave it out or use optimizer=sgd"
            )

    @property
    def slots(self) -> int:
        return 2 if self.optimizer != "sgd" else 1 if self.momentum else 0

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return STEPS[self.optimizer].direction(self, grad, w, anchor)

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        STEPS[self.optimizer].update(self, w, grad, slots, step, active)
