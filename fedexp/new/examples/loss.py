"""What an example costs: write here a number for each, given what a model says of it and what is right.

As it stands, the focal loss (Lin et al. 2017, arXiv 1708.02002): examples that are nearly right count less.
"""

from typing import Annotated

import torch
from torch.nn import functional as F

from fedexp.parts import Loss, Range


class OwnLoss(Loss):
    """The cross-entropy times (1 - p)**gamma, p being the probability of the label."""

    takes = ("class",)

    gamma: Annotated[float, Range(1)] = 2.0

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        cross_entropy = F.cross_entropy(outputs, targets, reduction="none")
        return (-torch.expm1(-cross_entropy)) ** self.gamma * cross_entropy
