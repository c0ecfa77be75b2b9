"""FedAvgM (Hsu, Qi & Brown 2019): heavy-ball momentum on the server's pseudo-gradient.

v <- beta v + (proposal - w), w <- w + lr v, on the trainable entries; buffers take the proposal's values. The paper's
experiments take Nesterov's step, as Flower's baseline reports (baselines/fedavgm), and try several beta.
"""

from typing import Annotated

import torch

from fedexp.parts import Memory, Positive, Range, ServerOptimizer, Weights


def apply_step(weights: Weights, proposal: Weights, step: torch.Tensor) -> Weights:
    """Adds a step `[P]` to the trainable entries of the model; buffers are the proposal's."""
    parameters = weights.layout.parameters
    flat = torch.cat([weights.flat[:parameters] + step, proposal.flat[parameters:]])
    return Weights(flat, weights.layout)


def pseudo_gradient(weights: Weights, proposal: Weights) -> torch.Tensor:
    """The update that the round proposes for the trainable entries: proposal - w, `[P]`."""
    return (proposal.flat - weights.flat)[: weights.layout.parameters]


class Momentum(ServerOptimizer):
    """Server momentum."""

    needs_layout = True

    lr: Annotated[float, Positive] = 1.0
    beta: Annotated[float, Range(0, 1, high_open=True)] = 0.9

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        delta = pseudo_gradient(weights, proposal)
        velocity = self.beta * memory.get("velocity", torch.zeros_like(delta)) + delta
        return apply_step(weights, proposal, self.lr * velocity), {"velocity": velocity}
