"""The server trains the first model on its public data before the first round, as in the clustering text.

The text gives neither optimizer nor rate nor epochs; they are options. Adam is Kingma & Ba's with beta 0.9 and 0.999;
SGD has no momentum.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import torch

from fedexp.parts import LocalRule, Positive, Pretraining, Range, Weights, adam_step, descend

Optimizer = Literal["adam", "sgd"]


class Descent(LocalRule):
    """Steps of one of the two optimizers."""

    optimizer: Optimizer = "adam"

    @property
    def slots(self) -> int:
        return 2 if self.optimizer == "adam" else 0

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        if self.optimizer == "adam":
            adam_step(w, grad, slots, step, (self.lr, 0.9, 0.999, 1e-8), active)
        else:
            descend(w, grad, self.lr, active)


class Public(Pretraining):
    """`epochs` over shuffled batches of all public examples."""

    needs_public = True

    epochs: Annotated[int, Range(1)] = 10
    batch_size: Annotated[int, Range(1)] | Literal["full"] = 50
    optimizer: Optimizer = "adam"
    lr: Annotated[float, Positive] = 0.001

    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        return train(Descent(epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, optimizer=self.optimizer))
