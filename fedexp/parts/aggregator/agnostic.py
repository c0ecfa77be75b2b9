"""Agnostic federated learning (Mohri, Sivek and Suresh 2019, arXiv 1902.00146): its stochastic algorithm.

The model minimises the loss of the worst mixture of clients. A mixture lambda over all clients is kept, at first
uniform over those with examples. Each round averages the updates by it, then lambda moves by `lr` times the losses F_k
of the received model and is projected back onto the simplex.

Deviation: its result is the mean of the models of all rounds, here it is the last one. Reading: the paper asks all
clients, or draws them; here those who took part are averaged by their own lambdas, and only their entries move before
the projection; a round of clients whose lambda is 0 leaves the model as it is, and who reports no finite loss does not
count. F_k is exact with `evaluation.client_losses=exact`, as in `algorithm=agnostic`; else it is the running loss of a
client's first epoch.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import SERVER, Aggregator, Context, Memory, Range, Uploads, Weights, mix_rows
from fedexp.parts.aggregator.client_losses import finite_losses


def project_to_simplex(values: np.ndarray) -> np.ndarray:
    """The point of the simplex closest to `values [n]` (Duchi et al. 2008, figure 1)."""
    values = values - values.max()  # which moves nothing, and leaves room for the 1 beside large numbers
    ordered = np.sort(values)[::-1]
    above = (ordered.cumsum() - 1) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(ordered > above)[-1]
    return np.maximum(values - above[last], 0)


class Agnostic(Aggregator):
    """Remembers the mixture over all clients, float64 `[N]`."""

    needs_cohort = "weighs clients by their losses of one model"
    reveals = "the losses of clients"
    weighting: Literal["uniform"] = "uniform"

    lr: Annotated[float, Range(0)] = 0.01

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        uploads = uploads.where(uploads.owner != SERVER)
        losses, counts = finite_losses(uploads, self.row_weights(uploads))
        if not counts.any():
            return weights, memory
        start = (ctx.sizes > 0) / np.count_nonzero(ctx.sizes)
        mixture = memory["mixture"].cpu().numpy().copy() if "mixture" in memory else start
        share = torch.from_numpy(mixture[uploads.owner] * (counts > 0)).to(uploads.delta.device)
        share = share / share.sum() if share.any() else share
        mixture[uploads.owner] += self.lr * losses
        holders = np.flatnonzero(ctx.sizes)
        mixture[holders] = project_to_simplex(mixture[holders])
        memory = memory | {"mixture": torch.from_numpy(mixture)}
        if not share.any():
            return weights, memory
        return Weights(weights.flat + mix_rows(share[None], uploads.delta)[0], weights.layout), memory
