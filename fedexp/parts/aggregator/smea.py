"""SMEA, smallest maximum eigenvalue averaging (Allouah et al. 2023, arXiv 2302.04787).

The mean of those n - f rows whose covariance has the smallest largest eigenvalue. Needs 2f < n.
"""

import torch

from fedexp.parts import centred_products
from fedexp.parts.aggregator.subset_mean import SubsetMean


class SMEA(SubsetMean):
    """The spread of a set is the largest eigenvalue of its covariance."""

    def spread(self, square: torch.Tensor) -> torch.Tensor:
        share = square.new_full((square.shape[-1],), 1 / square.shape[-1])
        return torch.linalg.eigvalsh(centred_products(square, share))[:, -1]
