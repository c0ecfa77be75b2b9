"""Same value (Li et al. 2019, RSA, arXiv 1811.03761): every entry of what malicious clients send is one number.

Deviation: in the authors' program a message of RSA is the model, with other rules a gradient; here it is the change of
the weights.
"""

from typing import Annotated

import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning, Range


class SameValue(ModelPoisoning):
    """Sends a delta of `value` in every entry."""

    reads_honest_rows = False

    value: Annotated[float, Range()] = 1.0

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        return torch.full_like(knowledge.own_updates, self.value), knowledge.memory
