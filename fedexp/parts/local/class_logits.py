"""The base of rules whose clients train on logits that they change by how many examples of each class they hold.

The model is measured with its plain logits.
"""

from abc import abstractmethod

import torch

from fedexp.parts import Loss, ModelOutputs
from fedexp.parts.local.heavy_ball import HeavyBall

FEW = 1e-8  # as how many examples of a class count that a client does not have


class ClassLogits(HeavyBall):
    """SGD on the loss of changed logits."""

    counts_classes = True

    @abstractmethod
    def change_logits(self, logits: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Other logits for `logits [B, K]` of a client with `counts [K]` examples of each class."""
        raise NotImplementedError

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        assert counts is not None
        return loss.per_example(self.change_logits(own_outputs.outputs, counts), targets)
