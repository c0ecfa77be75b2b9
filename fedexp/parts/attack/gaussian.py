"""Gaussian noise (Blanchard et al. 2017): every malicious client sends independent draws of N(0, std^2).

`add=true` adds them to the honest update instead. The draws of a client depend on the seed, the round and its number.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from fedexp.core.part import Range
from fedexp.core.values import Memory
from fedexp.parts.attack.forging import Forging, Scene


@dataclass(frozen=True, kw_only=True)
class Gaussian(Forging):
    """Sends noise of standard deviation `std` instead of the update, or adds it to the update."""

    std: Annotated[float, Range(0)] = 1.0
    add: bool = False

    def forge(self, scene: Scene) -> tuple[torch.Tensor, Memory]:
        noise = torch.empty_like(scene.own)
        for row, client in zip(noise, scene.owner, strict=True):
            draws = scene.ctx.rng("attack", int(client)).standard_normal(len(row), dtype=np.float32)
            row.copy_(self.std * torch.from_numpy(draws))
        return scene.own + noise if self.add else noise, scene.memory
