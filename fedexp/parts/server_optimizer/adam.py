"""FedAdam (Reddi et al. 2021, algorithm 2): Adam on the server's pseudo-gradient.

m <- b1 m + (1 - b1) d, v <- b2 v + (1 - b2) d^2, w <- w + lr m / (sqrt(v) + tau); no bias correction, as in the paper.
v begins at tau^2, the least that the paper allows; its authors' program begins at 0. Buffers take the proposal's
values.
"""

from typing import Annotated

import torch

from fedexp.parts import MAX_INTEGER, Memory, Positive, Range, ServerOptimizer, Weights
from fedexp.parts.server_optimizer.momentum import apply_step, pseudo_gradient

Beta = Annotated[float, Range(0, 1, high_open=True)]


class Adam(ServerOptimizer):
    """Adaptive server steps."""

    needs_layout = True

    lr: Annotated[float, Positive] = 0.1
    beta1: Beta = 0.9
    beta2: Beta = 0.99
    tau: Annotated[float, Range(0, MAX_INTEGER, low_open=True)] = 1e-3  # its square must be finite

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        delta = pseudo_gradient(weights, proposal)
        mean = memory.get("mean", torch.zeros_like(delta)).lerp(delta, 1 - self.beta1)
        square = self.second_moment(memory.get("square", torch.full_like(delta, self.tau**2)), finite_squares(delta))
        step = self.lr * mean / (square.sqrt() + self.tau)
        return apply_step(weights, proposal, step), {"mean": mean, "square": square}

    def second_moment(self, square: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Exponential moving average `[P]` of squares: `square [P]` is the average so far, `new [P]` the new square."""
        return square.lerp(new, 1 - self.beta2)


def finite_squares(delta: torch.Tensor) -> torch.Tensor:
    """The squares of `delta [P]`, at most the largest number: with an infinite one the next average would be none."""
    return delta.square().clamp(max=torch.finfo(delta.dtype).max)
