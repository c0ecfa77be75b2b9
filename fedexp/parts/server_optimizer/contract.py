"""The contract of server optimizers: how the server moves from its model to the proposal."""

from dataclasses import fields
from typing import Self

from fedexp.core.part import Part
from fedexp.core.values import Memory, Weights
from fedexp.parts.schedule.contract import with_rate


class ServerOptimizer(Part):
    """Moves the server's model towards the proposal. The base replaces it by the proposal."""

    needs_layout = False  # whether model and proposal must have the same shape

    @property
    def has_rate(self) -> bool:
        """Whether it has a learning rate `lr`, which a server schedule can move."""
        return any(field.name == "lr" for field in fields(self))

    def at(self, lr: float | None) -> Self:
        """A copy of the optimizer with the learning rate `lr`; the optimizer itself if `lr` is None."""
        return with_rate(self, lr)

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        """The next model, and the optimizer's memory."""
        return proposal, memory
