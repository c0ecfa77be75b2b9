"""q-FedAvg, fair resource allocation (Li et al. 2020, arXiv 1905.10497, algorithm 2).

With F_k the loss of the received model at client k, d_k its update and L = 1 / lr, the paper's step is
w - sum_k F_k^q L (-d_k) / sum_k (q F_k^(q-1) |L d_k|^2 + L F_k^q). Divided by L, as here, it is a sum of updates with
the weights F_k^q / sum_j (F_j^q + q F_j^(q-1) L |d_j|^2), which for q = 0 is the mean to the bit. Clients with large
losses count more, and the step is shorter the larger q is. Lengths are those of trainable entries; buffers take the
mean.

F_k is exact with `evaluation.client_losses=exact`, as in `algorithm=qfedavg`; else it is the running loss of a client's
first epoch. As the authors' program does, 1e-10 is added to it; who reports none that is finite does not count. `lr` is
the clients' rate, from which the paper estimates L.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import (
    Aggregator,
    Context,
    Memory,
    Positive,
    Range,
    RunError,
    Uploads,
    Weights,
    distances_to,
    mix_columns,
)
from fedexp.parts.aggregator.client_losses import finite_losses

TINY = 1e-10


def fair_weights(losses: np.ndarray, squares: np.ndarray, counts: np.ndarray, q: float, lr: float) -> np.ndarray:
    """The weights `[C]` of updates with `squares [C]` = |d_k|^2 and losses `[C]`, float64; `counts [C]` as examples."""
    losses = losses + TINY
    largest = losses.max()
    shares = losses / largest  # both sides of the fraction divided by largest^q, which may overflow
    heights = shares**q + q * shares ** (q - 1) * squares / (lr * largest)
    return counts * shares**q / (counts * heights).sum()


class QFedAvg(Aggregator):
    """Weighs clients by a power of their losses."""

    needs_cohort = "weighs clients by their losses of one model"
    reveals = "the losses of clients"
    weighting: Literal["num_samples", "uniform"] = "uniform"

    q: Annotated[float, Range(0)] = 1.0
    lr: Annotated[float, Positive] = 0.1

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        losses, counts = finite_losses(uploads, self.row_weights(uploads))
        if not counts.any():
            return weights, memory
        if (losses < 0).any():
            raise RunError(
                f"aggregator=qfedavg takes powers of losses, which must not be negative, got {losses.min():g}; use "
                "another loss, or aggregator=term"
            )
        parameters, share = weights.layout.parameters, self.shares(uploads)
        squares = distances_to(uploads.delta[:, :parameters]).square().cpu().numpy()
        fair = fair_weights(losses, squares, counts, self.q, self.lr)
        step = mix_columns(torch.from_numpy(fair).to(share), share, uploads.delta, parameters)
        return Weights(weights.flat + step, weights.layout), memory
