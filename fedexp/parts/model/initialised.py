"""The base of the networks here: initial values drawn by a law, and checks of the examples that they take."""

from typing import Literal

import numpy as np
from torch import nn

from fedexp.parts import ConfigError, Facts, Law, Model, initialise


class InitialisedModel(Model):
    """A network whose initial values are drawn by the law `init`; its last layer begins at zero if asked."""

    init: Law = "default"
    last_layer: Literal["zeros"] | None = None

    def initialise(self, network: nn.Module, rng: np.random.Generator) -> None:
        initialise(network, rng, self.init, zero_last=self.last_layer == "zeros")


def image_shape(facts: Facts, model: str, min_side: int) -> tuple[int, int, int]:
    """Checks and returns (channels, height, width) of images with at least `min_side` pixels a side."""
    if len(facts.shape) != 3 or min(facts.shape[1:]) < min_side:
        hint = "use model=char_lstm, which reads text" if facts.vocabulary else "use model=mlp, which takes any shape"
        raise ConfigError(
            f"model={model} needs images (channels, height, width) of at least {min_side} x {min_side} pixels, but the "
            f"dataset's examples have shape {facts.shape}; {hint}"
        )
    return facts.shape[0], facts.shape[1], facts.shape[2]


def refuse_text(facts: Facts, model: str) -> None:
    """Raises ConfigError for examples that are token numbers, which mean nothing as values."""
    if facts.vocabulary:
        raise ConfigError(
            f"model={model} needs images, signals or tables, but the dataset's examples are text; use model=char_lstm, "
            "which reads text"
        )
