"""FedLC, logits calibrated by the client's own classes (Zhang et al. 2022, arXiv 2209.00189).

A client that holds n_k examples of class k trains on the loss of the logits f_k - tau n_k**(-1/4): rare classes get a
wider margin, and classes that it lacks, whose n counts as 1e-8 (a margin of 100 tau), have next to no gradient.

Deviation: the paper leaves the label's own class out of the sum below the fraction; here it is in it, as in the usual
cross-entropy and in published code. The model is measured without margins.
"""

from typing import Annotated, ClassVar

import torch

from fedexp.parts import Range
from fedexp.parts.local.class_logits import FEW, ClassLogits


def calibrate_logits(logits: torch.Tensor, counts: torch.Tensor, tau: float) -> torch.Tensor:
    """`logits [B, K]` less tau n**(-1/4), given how many examples of each class there are, `counts [K]`."""
    return logits - tau * counts.clamp(min=FEW) ** -0.25


class FedLC(ClassLogits):
    """SGD on the loss of calibrated logits."""

    adds_nothing_at: ClassVar = {"tau": 0.0}

    tau: Annotated[float, Range(0)] = 1.0

    def change_logits(self, logits: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return calibrate_logits(logits, counts, self.tau)
