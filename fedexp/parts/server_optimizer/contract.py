"""The contract of server optimizers: how the server moves from its model to the proposal."""

from dataclasses import dataclass

from fedexp.core.part import Part
from fedexp.core.values import Memory, Weights


@dataclass(frozen=True, kw_only=True)
class ServerOptimizer(Part):
    """How the server moves from its model to the proposal. The base goes all the way."""

    needs_layout = False  # whether model and proposal must have the same shape

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        """The next model."""
        return proposal, memory
