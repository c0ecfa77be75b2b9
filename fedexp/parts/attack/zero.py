"""Free riders: malicious clients send no change at all, a delta of zeros."""

import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning


class Zero(ModelPoisoning):
    """Sends a delta of zeros."""

    reads_honest_rows = False

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        return torch.zeros_like(knowledge.own_updates), knowledge.memory
