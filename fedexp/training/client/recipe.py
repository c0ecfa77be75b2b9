"""What a trainer is built from."""

from dataclasses import dataclass
from functools import cached_property

from torch import nn

from fedexp.core.values import Layout
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.loss.contract import Loss
from fedexp.parts.privacy.contract import Privacy
from fedexp.training.client.examples import Examples
from fedexp.training.client.networks import NetworkBuilder


@dataclass(frozen=True)
class Recipe:
    """The loss, local rule and privacy of local training; `classes` is K, the number of a model's outputs."""

    loss: Loss
    rule: LocalRule
    privacy: Privacy
    classes: int


@dataclass(frozen=True)
class TrainerSpec:
    """What a trainer is built from; `memory_mb` is what stacked clients may take, `participants` how many there are."""

    build_network: NetworkBuilder
    layout: Layout
    examples: Examples
    recipe: Recipe
    memory_mb: float
    participants: int

    @cached_property
    def probe_network(self) -> nn.Module:
        """A network for inspection only, which is never trained."""
        return self.build_network()
