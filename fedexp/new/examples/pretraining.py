"""What the first model is: write here what the server makes of the drawn one before any client sees it.

As it stands, it is trained on the server's public data by plain steps (`scenario.public_fraction`).
"""

from collections.abc import Callable
from typing import Annotated

import torch

from fedexp.parts import LocalRule, Pretraining, Range, Weights


class Steps(LocalRule):
    """Plain SGD."""

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        w.sub_(grad * (self.lr if active is None else self.lr * active))


class OwnPretraining(Pretraining):
    """`epochs` over the public data."""

    needs_public = True

    epochs: Annotated[int, Range(1)] = 5

    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        return train(Steps(epochs=self.epochs))
