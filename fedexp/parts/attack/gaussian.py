"""Gaussian noise (Blanchard et al. 2017): every malicious client sends independent draws of N(0, std^2).

`add=true` adds them to the honest update instead. The draws of a client depend on the seed, the round and its number.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning, Range


class Gaussian(ModelPoisoning):
    """Sends noise of standard deviation `std` instead of the update, or adds it to the update."""

    reads_honest_rows = False

    std: Annotated[float, Range(0)] = 1.0
    add: bool = False

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        noise = torch.empty_like(knowledge.own_updates)
        for row, client in zip(noise, knowledge.owner, strict=True):
            draws = knowledge.ctx.rng("attack", int(client)).standard_normal(len(row), dtype=np.float32)
            row.copy_(self.std * torch.from_numpy(draws))
        return knowledge.own_updates + noise if self.add else noise, knowledge.memory
