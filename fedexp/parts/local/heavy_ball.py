"""Steps of SGD with heavy-ball or Nesterov momentum, which several rules share.

v <- momentum v + g and w <- w - lr v, or w <- w - lr (g + momentum v) with `nesterov`: torch.optim.SGD without
dampening. g is the gradient of the mini-batch, at most `clip_norm` long, plus what the rule adds to it: weight decay is
coupled. Momentum starts from zero in each round.
"""

from dataclasses import fields
from typing import Annotated, TypeVar

import numpy as np
import torch

from fedexp.parts import ConfigError, LocalRule, Range, descend, heavy_ball, path_lengths

Rule = TypeVar("Rule", bound=LocalRule)


class HeavyBall(LocalRule):
    """Stochastic gradient descent with momentum."""

    momentum: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    nesterov: bool = False
    weight_decay: Annotated[float, Range(0)] = 0.0

    def check(self) -> None:
        super().check()
        if self.nesterov and not self.momentum:
            raise ConfigError(f"{type(self).__name__}.nesterov needs momentum > 0, got 0; set it, for example to 0.9")

    def settings_as(self, kind: type[Rule]) -> Rule:
        """Another rule, with the settings of this one that it has, too."""
        names = {field.name for field in fields(self)} & {field.name for field in fields(kind)}
        return kind(**{name: getattr(self, name) for name in names})

    @property
    def slots(self) -> int:
        return 1 if self.momentum else 0

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return grad.add(w, alpha=self.weight_decay) if self.weight_decay else grad

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        if self.momentum:
            grad = heavy_ball(grad, slots[0], self.momentum, self.nesterov)
        descend(w, grad, self.lr, active)

    def effective_steps(self, steps: np.ndarray) -> np.ndarray:
        return path_lengths(steps, self.momentum, self.nesterov, 0.0)
