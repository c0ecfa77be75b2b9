"""Generalized cross-entropy (Zhang & Sabuncu 2018, arXiv 1805.07836), for labels of which some are wrong.

An example of class y with probability p_y costs (1 - p_y**q) / q. Its gradient is that of cross-entropy times p_y**q,
so an example whose label the model finds improbable pulls little. q = 1 is half the mean absolute error between
probabilities and labels (Ghosh et al. 2017, arXiv 1712.09482), and also what `NLLLoss` of a softmax descends; q towards
0 is cross-entropy. The paper's truncated loss, which leaves out examples below a probability, is not here.

Models are measured by cross-entropy, so that runs with different losses can be compared.
"""

from typing import Annotated

import torch
from torch.nn import functional as F

from fedexp.parts import Loss, Range


class GeneralizedCrossEntropy(Loss):
    """Between cross-entropy and the absolute error, by `q`."""

    takes = ("class",)
    is_log_likelihood = True

    q: Annotated[float, Range(1e-6, 1)] = 0.7

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        log_prob = -F.cross_entropy(outputs, targets, reduction="none")
        return -torch.expm1(self.q * log_prob) / self.q

    def evaluation_losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")
