"""The contract of features: what the models of a run see of its examples.

The server learns an encoding from its public examples alone; everybody then encodes with it, the test data included.
Legend: S examples.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from fedexp.core.part import Part
from fedexp.parts.dataset.contract import Data, Facts, Split

Streams = Callable[..., np.random.Generator]  # a named random stream of the features


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How examples are transformed before a model sees them. The base leaves them unchanged.

    `figures` are what is worth knowing of it, by name; `layers` do the same to new examples, None if there is nothing
    to do.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    layers: nn.Module | None = None

    def split(self, split: Split, rng: np.random.Generator) -> Split:
        """The examples after the transformation."""
        return split

    def data(self, data: Data, rng: Streams) -> Data:
        """Training and test examples after the transformation."""
        return replace(data, train=self.split(data.train, rng("train")), test=self.split(data.test, rng("test")))


class Features(Part):
    """Learns an encoding from the public examples. The base learns nothing: models see examples unchanged."""

    needs_public: ClassVar[bool] = False  # whether the server must have public data

    def facts(self, facts: Facts) -> Facts:
        """The facts of the encoded examples, given the facts of the dataset."""
        return facts

    def layers(self, facts: Facts) -> nn.Module | None:
        """Layers as those of the encoding, with other values: examples `[B, *shape]` to what a model sees of them."""
        return None

    def learn(self, public: torch.Tensor, rng: Streams, device: torch.device) -> Encoding:
        """Learns the encoding from the server's examples `[S, *shape]` in their stored form."""
        return Encoding()
