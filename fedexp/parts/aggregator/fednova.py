"""FedNova (Wang et al. 2020, arXiv 2007.07481, section 5): updates normalised by how much they trained.

w + tau_eff sum_k p_k delta_k / ||a_k||_1 with tau_eff = sum_k p_k ||a_k||_1. a_k holds the weights that client k's
update gives to the gradients along its steps: its 1-norm is the number of steps for plain SGD, more with momentum, less
with FedProx's pull (`LocalRule.effective_steps`); with both some weights are negative. Clipping, weight decay and
SCAFFOLD's variates count as part of the gradient. p_k are the shares of FedAvg. With equal a_k it is FedAvg.

Deviations: in the authors' code tau_eff counts steps, not ||a_k||_1, where there is a proximal term, so that equal
clients go further than FedProx's. A client that took no step moves nothing.
Statistics of the model, which no step moves, are averaged as in FedAvg.
"""

import torch

from fedexp.parts import Aggregator, Context, Memory, Uploads, Weights
from fedexp.parts.aggregator.fedavg import weighted_mean


def normalise_rows(delta: torch.Tensor, share: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """The rows `delta [C, D]` times tau_eff / ||a||_1, given their shares `[C]` and norms `length [C]`; `[C, D]`."""
    factor = torch.where(length > 0, (share * length).sum() / length.clamp(min=1e-300), 0.0)
    return delta * factor[:, None].to(delta.dtype)


class FedNova(Aggregator):
    """Weighted mean of the normalised deltas."""

    normalises = True

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        assert uploads.length is not None
        share, trainable = self.shares(uploads), weights.layout.parameters
        length = torch.from_numpy(uploads.length).to(share.device)
        normalised_delta = normalise_rows(uploads.delta[:, :trainable], share, length)
        rows = torch.cat([normalised_delta, uploads.delta[:, trainable:]], dim=1)
        return super().combine(weights, uploads.with_delta(rows), memory, ctx)

    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return weighted_mean(delta, share)
