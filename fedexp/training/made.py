"""What a trainer is built from."""

from dataclasses import dataclass
from functools import cached_property

from torch import nn

from fedexp.core.values import Layout
from fedexp.training.examples import Examples
from fedexp.training.networks import Network
from fedexp.training.recipe import Recipe


@dataclass(frozen=True)
class Made:
    """What a trainer is built from: network, layout, examples, recipe and memory."""

    network: Network
    layout: Layout
    examples: Examples
    recipe: Recipe
    memory_mb: float

    @cached_property
    def face(self) -> nn.Module:
        """A network for inspection only, which is never trained."""
        return self.network()
