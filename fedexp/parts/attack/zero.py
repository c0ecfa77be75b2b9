"""Free riders: malicious clients send no change at all, a delta of zeros."""

from dataclasses import dataclass

import torch

from fedexp.core.values import Memory
from fedexp.parts.attack.forging import Forging, Scene


@dataclass(frozen=True, kw_only=True)
class Zero(Forging):
    """Sends a delta of zeros."""

    def forge(self, scene: Scene) -> tuple[torch.Tensor, Memory]:
        return torch.zeros_like(scene.own), scene.memory
