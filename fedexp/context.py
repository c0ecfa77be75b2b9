"""The questions a part may ask: the only way it reaches data and randomness."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedexp.streams import stream
from fedexp.values import Plan

if TYPE_CHECKING:
    from fedexp.world import World


@dataclass(frozen=True)
class Context:
    """One round's view of the world."""

    world: "World"
    round: int

    def rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of (seed, round, name)."""
        return stream(self.world.exp.seed, self.round, *name)

    def run_rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of (seed, name): the same draws in every round."""
        return stream(self.world.exp.seed, *name)

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return self.world.partition.clients

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of every client, int64 [N]."""
        return self.world.sizes

    @property
    def parameters(self) -> int:
        """Trainable entries of the model."""
        return self.world.layout.parameters

    def epochs(self, examples: np.ndarray) -> np.ndarray:
        """Passes over its data that a client with so many examples makes in a round."""
        rule = self.world.exp.local
        if rule.epochs is not None:
            return np.full(len(examples), float(rule.epochs))
        assert rule.steps is not None
        batch = examples if rule.batch_size == "full" else np.full(len(examples), rule.batch_size)
        return rule.steps * np.minimum(batch, examples) / np.maximum(examples, 1)

    def plan(self, owner: np.ndarray) -> Plan:
        """These clients, each on its own data."""
        return Plan(owner, tuple(self.world.partition.shard(int(client)) for client in owner))
