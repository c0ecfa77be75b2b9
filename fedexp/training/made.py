"""What a run's trainer is made of."""

from dataclasses import dataclass
from functools import cached_property

from torch import nn

from fedexp.core.values import Layout
from fedexp.training.examples import Examples
from fedexp.training.networks import Network
from fedexp.training.recipe import Recipe


@dataclass(frozen=True)
class Made:
    """What a run's trainer is made of."""

    network: Network
    layout: Layout
    examples: Examples
    recipe: Recipe
    memory_mb: float

    @cached_property
    def face(self) -> nn.Module:
        """A network that nobody trains, to look at."""
        return self.network()
