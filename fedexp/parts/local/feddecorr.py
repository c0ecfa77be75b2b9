"""FedDecorr (Shi et al. 2023, arXiv 2210.00226): clients keep their features from moving together.

A batch costs the mean loss plus beta / d**2 times the squared Frobenius norm of the correlation matrix of its d
features, which are what the last linear layer is given. So no dimension of the features becomes a copy of another, as
happens to clients that hold few classes. The paper's beta is 0.1. Its authors' program (973e4af) has another factor: a
coefficient c there, with batches of N, is beta = c (N - 1)**2 / (N (1 - 1 / d)) here, 6.2 for 0.1 at N = 64, d = 512.

Features are normalised over the batch, their variance plus 1e-8. A batch of one example has no correlations. In texts
each position counts as an example. beta = 0 is SGD.
"""

from typing import Annotated, ClassVar

import torch

from fedexp.parts import Facts, Model, ModelOutputs, Range, refuse_without_features
from fedexp.parts.local.heavy_ball import HeavyBall

SMALLEST_VARIANCE = 1e-8


def decorrelation_cost(features: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """The mean squared correlation, a scalar, of the columns of `features [B, d]`, weighted by `share [B]`."""
    weights = share[:, None]
    centred = features - (weights * features).sum(dim=0)
    normalised = centred / ((weights * centred**2).sum(dim=0) + SMALLEST_VARIANCE).sqrt()
    correlations = (weights * normalised).T @ normalised
    return (correlations**2).mean()


class FedDecorr(HeavyBall):
    """SGD on the loss and a cost of correlated features."""

    adds_nothing_at: ClassVar = {"beta": 0.0}

    beta: Annotated[float, Range(0)] = 0.1

    @property
    def cost_needs_client_state(self) -> bool:
        return True

    def refuse(self, model: Model, facts: Facts) -> None:
        refuse_without_features("local=feddecorr looks at", model, facts)

    def cost_of_batch(self, own_outputs: ModelOutputs, share: torch.Tensor) -> torch.Tensor | None:
        if not self.beta:
            return None
        features = (
            own_outputs.features.flatten(1, -2) if own_outputs.features.dim() > 2 else own_outputs.features[:, None]
        )
        positions = features.shape[1]  # of a sequence, each with features of its own
        shares = (share / positions).repeat_interleave(positions)
        return self.beta * decorrelation_cost(features.flatten(0, 1), shares)
