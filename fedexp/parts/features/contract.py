"""The contract of features: what the models of a run see of its examples.

The server learns an encoding from its public examples alone; everybody then encodes with it, the test data included.
Legend: S examples.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch

from fedexp.core.part import Part
from fedexp.parts.dataset.contract import Data, Facts, Split

Streams = Callable[..., np.random.Generator]  # a named random stream of the features


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """What everybody does to examples before a model sees them. The base leaves them as they are."""

    figures: Mapping[str, float] = field(default_factory=dict)  # what is worth knowing of it, by name

    def split(self, split: Split, rng: np.random.Generator) -> Split:
        """The examples as models see them."""
        return split

    def data(self, data: Data, rng: Streams) -> Data:
        """Training and test examples as models see them."""
        return replace(data, train=self.split(data.train, rng("train")), test=self.split(data.test, rng("test")))


@dataclass(frozen=True, kw_only=True)
class Features(Part):
    """What is learnt of the public examples. The base learns nothing: models see examples as they are."""

    needs_public: ClassVar[bool] = False  # whether the server must have public data

    def facts(self, facts: Facts) -> Facts:
        """What can be said of the examples that models see, given what can be said of the dataset."""
        return facts

    def learn(self, public: torch.Tensor, rng: Streams, device: torch.device) -> Encoding:
        """The encoding learnt of the server's examples `[S, *shape]`, as they are stored."""
        return Encoding()
