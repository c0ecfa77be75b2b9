"""FedRS, the restricted softmax (Li and Zhan 2021, doi 10.1145/3447548.3467254; again in their arXiv 2404.09232).

In the loss a client multiplies the logits of classes that it lacks by alpha, so that it changes their weights less:
with alpha = 0 not at all, with alpha = 1 as FedAvg does. The default 0.5 is that of FedDecorr's program (973e4af); the
authors' own tries 0.9, 0.5 and 0.1.

The whole logit is scaled, its bias too. The model is measured with its plain logits. The authors' program (FedRepo,
617ee01) scales the logit of class c by alpha + (1 - alpha) n_c / max n instead, and leaves the bias out.
"""

from typing import Annotated, ClassVar

import torch

from fedexp.parts import Range
from fedexp.parts.local.class_logits import ClassLogits


def restrict_logits(logits: torch.Tensor, counts: torch.Tensor, alpha: float) -> torch.Tensor:
    """`logits [B, K]`, those of classes without an example in `counts [K]` times alpha."""
    return torch.where(counts > 0, logits, alpha * logits)


class FedRS(ClassLogits):
    """SGD on the loss of restricted logits."""

    adds_nothing_at: ClassVar = {"alpha": 1.0}

    alpha: Annotated[float, Range(0, 1)] = 0.5

    def change_logits(self, logits: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return restrict_logits(logits, counts, self.alpha)
