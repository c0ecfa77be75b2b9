"""FedRS, the restricted softmax (Li and Zhan 2021, doi 10.1145/3447548.3467254; again in their arXiv 2404.09232).

In the loss a client multiplies the logits of classes that it lacks by alpha, so that it changes their weights less:
with alpha = 0 not at all, with alpha = 1 as FedAvg does. The default 0.5 is that of public programs.

The whole logit is scaled, its bias too. The model is measured with its plain logits.
"""

from typing import Annotated

import torch

from fedexp.parts import Loss, ModelOutputs, Range
from fedexp.parts.local.heavy_ball import HeavyBall


def restrict_logits(logits: torch.Tensor, counts: torch.Tensor, alpha: float) -> torch.Tensor:
    """`logits [B, K]`, those of classes without an example in `counts [K]` times alpha."""
    return torch.where(counts > 0, logits, alpha * logits)


class FedRS(HeavyBall):
    """SGD on the loss of restricted logits."""

    counts_classes = True

    alpha: Annotated[float, Range(0, 1)] = 0.5

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        assert counts is not None
        return loss.per_example(restrict_logits(own_outputs.outputs, counts, self.alpha), targets)
