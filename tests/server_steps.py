"""Rounds by hand on one trainable entry and one buffer."""

import torch

from fedexp.core.values import Layout, Weights
from fedexp.parts.server_optimizer.contract import ServerOptimizer

LAYOUT = Layout(("w", "running"), ((1,), (1,)), 1)


def path(rule: ServerOptimizer, asks: list[float]) -> list[float]:
    """The model after each round in which the clients ask to move by so much."""
    weights, memory, seen = Weights(torch.tensor([0.0, 5.0]), LAYOUT), {}, []
    for ask in asks:
        proposal = Weights(weights.flat + torch.tensor([ask, 1.0]), LAYOUT)
        weights, memory = rule.step(weights, proposal, memory)
        seen.append(weights.flat[0].item())
    assert weights.flat[1].item() == 5.0 + len(asks)
    return seen
