"""Several copies of another network whose answers are mixed: p(y | x) = sum_m pi_m softmax(h_m(x))_y.

    fedexp run model=mixture model@model.component=lenet model.components=4

The copies are drawn one after the other, so that they differ. The shares pi are equal; no step moves them, since they
are a buffer: `local=fedem` gives each client its own. The answers are log-probabilities, which a softmax leaves as they
are. Legend: B batch, M components, K classes.
"""

import math
import re
from dataclasses import replace
from typing import Annotated

import numpy as np
import torch
from torch import nn

from fedexp.parts import ConfigError, Facts, Mixing, Model, Range


class MixtureNetwork(nn.Module):
    """Components side by side, and the logarithms of their shares."""

    def __init__(self, components: list[nn.Module]) -> None:
        super().__init__()
        self.components, self.mixing = nn.ModuleList(components), Mixing()
        self.log_shares: torch.Tensor
        self.register_buffer(Mixing.shares, torch.full((len(components), 1), math.log(1 / len(components))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Log-probabilities `[B, ..., K]` of `x [B, *shape]`."""
        parts = torch.stack([component(x).log_softmax(dim=-1) for component in self.components], dim=-2)
        return self.mixing(parts + self.log_shares)  # nothing but a sum, which an export can write down


class Mixture(Model):
    """`components` copies of the network of the model `component`."""

    components: Annotated[int, Range(1)] = 3
    component: Model

    def check(self) -> None:
        if isinstance(self.component, Mixture):
            raise ConfigError("Mixture.component must be no mixture itself; set model@model.component=mlp or another")
        if self.component.buffers != self.buffers:
            raise ConfigError(
                f"Mixture.component.buffers must be those of the mixture, {self.buffers}, got "
                f"{self.component.buffers}; set model.buffers alone"
            )

    def refuse(self, facts: Facts) -> None:
        if facts.targets not in ("class", "tokens"):
            raise ConfigError(
                "model=mixture mixes probabilities of classes, but the dataset's targets are "
                f"{facts.targets}; use model=mlp"
            )
        try:
            self.component.refuse(facts)
        except ConfigError as error:
            message = str(error).replace("model=", "model@model.component=")
            raise ConfigError(re.sub(r"\bmodel\.(?!component\b)", "model.component.", message)) from error

    def network(self, facts: Facts) -> nn.Module:
        return MixtureNetwork([self.component.network(facts) for _ in range(self.components)])

    def without_files(self) -> Model:
        return replace(self, component=self.component.without_files())

    def initialise(self, network: nn.Module, rng: np.random.Generator) -> None:
        assert isinstance(network, MixtureNetwork)
        for component in network.components:
            self.component.initialise(component, rng)
