"""What a run's trainer is made of, and which runs can share one."""

from dataclasses import dataclass
from functools import cached_property

from torch import nn

from fedexp.core.values import Layout
from fedexp.training.examples import Examples
from fedexp.training.joint import poolable
from fedexp.training.networks import Network
from fedexp.training.recipe import Recipe
from fedexp.training.twins import twins


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
        """A network that nobody trains, to compare with."""
        return self.network()

    def fits(self, other: "Made") -> bool:
        """Whether the rows of both can train together."""
        mine, yours = self.recipe, other.recipe
        return (
            self.layout == other.layout
            and self.memory_mb == other.memory_mb
            and type(mine.rule) is type(yours.rule)
            and mine.rule.at(1.0) == yours.rule.at(1.0)
            and (mine.loss, mine.classes) == (yours.loss, yours.classes)
            and mine.privacy.example_clip == yours.privacy.example_clip
            and mine.privacy.example_noise == yours.privacy.example_noise
            and poolable(self.examples, other.examples)
            and twins(self.face, other.face)
        )
