"""Inner product manipulation (Xie, Koyejo & Gupta 2019, "Fall of empires", arXiv 1903.03936).

All malicious clients send -epsilon times the mean of the honest updates: the mean of all then points backwards (a large
epsilon), or a robust rule is led the wrong way by rows that lie close to the others (a small one).
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from fedexp.attacks.forging import Forging, Scene
from fedexp.spec import Range
from fedexp.values import Memory


@dataclass(frozen=True, kw_only=True)
class IPM(Forging):
    """-`epsilon` times the honest mean."""

    epsilon: Annotated[float, Range(0)] = 0.5

    def forge(self, scene: Scene) -> tuple[torch.Tensor, Memory]:
        forged = -self.epsilon * scene.honest.double().mean(dim=0)
        return forged.to(scene.own.dtype).expand_as(scene.own), scene.memory
