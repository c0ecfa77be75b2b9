"""How the server steps with the update: write here what it makes of its model and the proposal.

As it stands, it goes part of the way. Moments and the like are remembered in the memory, as tensors.
"""

from typing import Annotated

from fedexp.parts import Memory, Positive, ServerOptimizer, Weights


class OwnServerOptimizer(ServerOptimizer):
    """`lr` times the way from the model to the proposal."""

    needs_layout = True  # it subtracts one from the other

    lr: Annotated[float, Positive] = 1.0

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        return Weights(weights.flat + self.lr * (proposal.flat - weights.flat), weights.layout), memory
