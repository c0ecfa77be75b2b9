"""FedAdagrad (Reddi et al. 2021, arXiv 2003.00295, algorithm 2): Adagrad on the server's pseudo-gradient.

v <- v + d^2, w <- w + lr d / (sqrt(v) + tau) with v_0 = tau^2, without the first moment (beta1 = 0), as in the paper's
experiments. Buffers take the proposal's values.
"""

from typing import Annotated

import torch

from fedexp.parts import MAX_INTEGER, Memory, Positive, Range, ServerOptimizer, Weights
from fedexp.parts.server_optimizer.momentum import apply_step, pseudo_gradient


class Adagrad(ServerOptimizer):
    """Server steps that shrink with the sum of all squared updates."""

    needs_layout = True

    lr: Annotated[float, Positive] = 0.1
    tau: Annotated[float, Range(0, MAX_INTEGER, low_open=True)] = 1e-3  # its square must be finite

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        delta = pseudo_gradient(weights, proposal)
        square = memory.get("square", torch.full_like(delta, self.tau**2)) + delta.square()
        return apply_step(weights, proposal, self.lr * delta / (square.sqrt() + self.tau)), {"square": square}
