"""The contract of models: a network for examples of a given shape.

Legend: B batch, K numbers that are given for an example (one a class), D entries of a model.
"""

from abc import abstractmethod
from typing import Literal

import numpy as np
from torch import nn

from fedexp.core.part import Part
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts


class Model(Part):
    """A network for examples of a given shape."""

    buffers: Literal["average", "local"] = "average"

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError where the network cannot take such examples, and says why."""

    @abstractmethod
    def network(self, facts: Facts) -> nn.Module:
        """The network: examples `[B, *shape]` to `[B, *facts.outputs]`, which is logits `[B, K]` but for tokens."""
        raise NotImplementedError

    def without_files(self) -> "Model":
        """The same network, but made without reading files: its entries come from elsewhere."""
        return self

    def initialise(self, network: nn.Module, rng: np.random.Generator) -> None:
        """Draws the initial values of a new network; here it keeps PyTorch's own, seeded by the run."""

    def personal(self, layout: Layout) -> np.ndarray:
        """The columns `[m]` of a row, ascending, that each client sends, but also keeps for its next training."""
        return np.arange(layout.parameters if self.buffers == "local" else layout.size, layout.size)
