"""TERM, tilted empirical risk minimisation, over clients (Li et al. 2021, arXiv 2007.01162).

The gradient of the tilted loss log(sum_k p_k exp(t F_k)) / t is the mean of the clients' gradients with weights in
proportion to p_k exp(t F_k), so updates are averaged with these weights; F_k is the loss of the received model at
client k. t = 0 is the mean, t -> infinity looks at the worst client, t < 0 ignores clients with large losses.

F_k is exact with `evaluation.client_losses=exact`, as in `algorithm=term`; else it is the running loss of a client's
first epoch; who reports none that is finite does not count. Deviation: the authors' program (litian96/TERM, ac3c01d)
divides by C once more, and by a running mean of exp(t F_k) in place of this round's sum.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import Aggregator, Context, Memory, Range, Uploads, Weights, mix_rows
from fedexp.parts.aggregator.client_losses import finite_losses


def tilted_shares(losses: np.ndarray, counts: np.ndarray, t: float) -> np.ndarray:
    """Shares `[C]`, summing to one, in proportion to counts exp(t losses); at least one of `counts [C]` is above 0."""
    with np.errstate(over="ignore"):  # an exponent of -inf is right: its client has no share
        exponents = np.where(counts > 0, t * losses, -np.inf)
        if not np.isfinite(exponents.max()):
            heaviest = (losses[counts > 0] * np.sign(t)).max() * np.sign(t)
            exponents = np.where(counts > 0, t * (losses - heaviest), -np.inf)
        tilted = counts * np.exp(exponents - exponents.max())
    return tilted / tilted.sum()


class TERM(Aggregator):
    """Weighs clients by the exponential of their losses."""

    needs_cohort = "weighs clients by their losses of one model"
    reveals = "the losses of clients"
    weighting: Literal["num_samples", "uniform"] = "uniform"

    t: Annotated[float, Range()] = 1.0

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        losses, counts = finite_losses(uploads, self.row_weights(uploads))
        if not counts.any():
            return weights, memory
        share = torch.from_numpy(tilted_shares(losses, counts, self.t)).to(uploads.delta.device)
        return Weights(weights.flat + mix_rows(share[None], uploads.delta)[0], weights.layout), memory
