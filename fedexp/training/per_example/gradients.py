"""Per-example gradients outside of training, clipped as private training clips them."""

import numpy as np
import torch
from torch import nn

from fedexp.core.values import Layout
from fedexp.training.client.examples import Examples
from fedexp.training.client.objective import Losses
from fedexp.training.per_example.clipped_sum import ClippedGradientSum

FLOATS = 2**24  # in the gradients that are formed at once


class PerExampleGradients:
    """Per-example gradients of a network in evaluation mode. Legend: D entries of a row, n examples, P trainable."""

    def __init__(self, network: nn.Module, layout: Layout, clip: float, examples: Examples, losses: Losses) -> None:
        """`clip` may be infinite."""
        self.layout, self.examples = layout, examples
        self.clipped_gradients = ClippedGradientSum(network, layout, clip, examples.inputs(slice(0, 1)), losses)

    def per_example(self, row: torch.Tensor, index: np.ndarray) -> torch.Tensor:
        """Returns the gradient of each of the examples `index [n]`, as `[n, P]`, at the model `row [D]`."""
        parts = self.examples.to_device(index).split(max(1, FLOATS // self.layout.parameters))
        rows = [
            self.clipped_gradients.per_example(*self._split(row), self.examples.inputs(part), self.examples.y[part])
            for part in parts
        ]
        return torch.cat(rows) if len(index) else row.new_zeros((0, self.layout.parameters))

    def sum(self, row: torch.Tensor, index: np.ndarray) -> torch.Tensor:
        """Returns the sum `[P]` of the gradients at the examples `index [n]`, at the model `row [D]`."""
        total = row.new_zeros(self.layout.parameters)
        for part in self.examples.to_device(index).split(
            max(1, FLOATS // max(1, self.clipped_gradients.materialised_floats))
        ):
            x, y = self.examples.inputs(part), self.examples.y[part]
            if len(y):
                mask = torch.ones(len(y), dtype=torch.bool, device=y.device)
                total += self.clipped_gradients.clipped_sum(*self._split(row), x, y, mask)[0]
        return total

    def _split(self, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return row[: self.layout.parameters], row[self.layout.parameters :]
