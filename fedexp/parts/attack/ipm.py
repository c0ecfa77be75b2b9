"""Inner product manipulation (Xie, Koyejo & Gupta 2019, "Fall of empires", arXiv 1903.03936).

All malicious clients send -epsilon times the mean of the honest updates. With a large epsilon the mean of all points
backwards; with a small one the rows lie close to the others and mislead a robust rule.
"""

from typing import Annotated

import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning, Range


class IPM(ModelPoisoning):
    """Sends the honest mean times -`epsilon`."""

    epsilon: Annotated[float, Range(0)] = 0.5

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        forged = -self.epsilon * knowledge.honest_updates.double().mean(dim=0)
        return forged.to(knowledge.own_updates.dtype).expand_as(knowledge.own_updates), knowledge.memory
