"""FedLC, logits calibrated by the client's own classes (Zhang et al. 2022, arXiv 2209.00189, section 4).

A client that holds n_k examples of class k trains on the loss of the logits f_k - tau n_k**(-1/4): rare classes get a
wider margin, and classes that it lacks, whose n counts as 1e-8, have next to no gradient.

Deviation: the paper leaves the label's own class out of the sum below the fraction; here it is in it, as in the usual
cross-entropy and in published code. The model is measured without margins.
"""

from typing import Annotated

import torch

from fedexp.parts import Loss, ModelOutputs, Range
from fedexp.parts.local.heavy_ball import HeavyBall

FEW = 1e-8  # examples of a class that a client does not have: a margin of 100 tau


def calibrate_logits(logits: torch.Tensor, counts: torch.Tensor, tau: float) -> torch.Tensor:
    """`logits [B, K]` less tau n**(-1/4), given how many examples of each class there are, `counts [K]`."""
    return logits - tau * counts.clamp(min=FEW) ** -0.25


class FedLC(HeavyBall):
    """SGD on the loss of calibrated logits."""

    counts_classes = True

    tau: Annotated[float, Range(0)] = 1.0

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        assert counts is not None
        return loss.per_example(calibrate_logits(own_outputs.outputs, counts, self.tau), targets)
