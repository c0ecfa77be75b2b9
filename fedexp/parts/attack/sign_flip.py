"""Sign flipping (Li et al. 2019, RSA, arXiv 1811.03761): the honest update negated and scaled, -scale * delta.

Deviation: in the authors' program a message of RSA is the model, here it is the update.
"""

from typing import Annotated

import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning, Range


class SignFlip(ModelPoisoning):
    """Each malicious client sends `-scale` times its update."""

    reads_honest_rows = False

    scale: Annotated[float, Range(0)] = 10.0

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        return -self.scale * knowledge.own_updates, knowledge.memory
