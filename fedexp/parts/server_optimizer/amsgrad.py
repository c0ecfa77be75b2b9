"""AMSGrad (Reddi et al. 2018) on the server's pseudo-gradient, as in FADAS (Wang et al. 2024, algorithm 1).

m <- b1 m + (1 - b1) d, v <- b2 v + (1 - b2) d^2, u <- max(u, v), w <- w + lr m / (sqrt(u) + tau), all from 0; no bias
correction. Buffers take the proposal's values.
"""

from typing import Annotated

import torch

from fedexp.parts import MAX_INTEGER, Memory, Positive, Range, Weights
from fedexp.parts.server_optimizer.adam import Adam, finite_squares
from fedexp.parts.server_optimizer.momentum import apply_step, pseudo_gradient


class AMSGrad(Adam):
    """Adaptive server steps by the largest second moment so far."""

    lr: Annotated[float, Positive] = 0.01
    tau: Annotated[float, Range(0, MAX_INTEGER, low_open=True)] = 1e-8

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        delta = pseudo_gradient(weights, proposal)
        zeros = torch.zeros_like(delta)
        mean = memory.get("mean", zeros).lerp(delta, 1 - self.beta1)
        square = self.second_moment(memory.get("square", zeros), finite_squares(delta))
        largest = torch.maximum(memory.get("largest", zeros), square)
        step = self.lr * mean / (largest.sqrt() + self.tau)
        return apply_step(weights, proposal, step), {"mean": mean, "square": square, "largest": largest}
