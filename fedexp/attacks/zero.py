"""Free riders: malicious clients send no change at all, a delta of zeros."""

from dataclasses import dataclass

import torch

from fedexp.attacks.forging import Forging, Scene
from fedexp.values import Memory


@dataclass(frozen=True, kw_only=True)
class Zero(Forging):
    """A delta of zeros."""

    def forge(self, scene: Scene) -> tuple[torch.Tensor, Memory]:
        return torch.zeros_like(scene.own), scene.memory
