"""How long clients train in a round, and in which batches."""

import math
from collections.abc import Callable
from typing import Annotated, Literal, Self

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.part import Part, Range
from fedexp.core.replace_unchecked import replace_unchecked

PositiveInt = Annotated[int, Range(1)]
Epochs = PositiveInt | Annotated[float, Range(0, low_open=True)] | tuple[PositiveInt, ...]


class Workload(Part):
    """A number of epochs, or a number of steps.

    Part of an epoch takes that part of its steps, rounded up. Epochs as [low, high] are drawn by every client in every
    round, each whole number from low to high being as likely as the others. The order of a client's examples is drawn
    anew for each epoch, or always that of the data's file, as a whole or class by class.
    """

    epochs: Epochs | None = 1
    steps: PositiveInt | None = None
    batch_size: PositiveInt | Literal["full"] = 20
    order: Literal["shuffled", "file", "by_class"] = "shuffled"
    drop_last: bool = False

    def check(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ConfigError(
                f"{type(self).__name__}.epochs and steps exclude each other, got epochs={self.epochs} and "
                f"steps={self.steps}; set one of them to null"
            )
        if isinstance(self.epochs, tuple) and not (len(self.epochs) == 2 and self.epochs[0] <= self.epochs[1]):
            raise ConfigError(
                f"{type(self).__name__}.epochs must be the fewest and the most as in [2,5], got {list(self.epochs)}; "
                "or give one number"
            )

    def with_drawn_epochs(self, owner: int, rng: Callable[..., np.random.Generator]) -> Self:
        """The workload of one client in one round; where epochs are a range, `rng` gives the stream for its draw."""
        if not isinstance(self.epochs, tuple):
            return self
        fewest, most = self.epochs
        return replace_unchecked(self, epochs=int(rng("epochs", owner).integers(fewest, most, endpoint=True)))

    def steps_in(self, epoch: int) -> int:
        """Steps in a round of a client with so many steps an epoch; the most possible where epochs are drawn."""
        if self.epochs is None:
            return self.steps or 0
        most = max(self.epochs) if isinstance(self.epochs, tuple) else self.epochs
        return math.ceil(most * epoch - 1e-9)

    def full_batch_steps(self, examples: np.ndarray) -> np.ndarray:
        """Steps in a round of clients with `examples [n]`, partial batches dropped, int64 [n]; at most, if drawn."""
        size = np.maximum(examples, 1) if self.batch_size == "full" else self.batch_size
        return np.array([self.steps_in(epoch) if epoch else 0 for epoch in (examples // size).tolist()], np.int64)

    def passes(self, examples: np.ndarray) -> np.ndarray:
        """Passes over its data that a client with so many examples `[n]` makes, float64 [n]; the mean, if drawn."""
        if self.epochs is not None:
            return np.full(len(examples), float(np.mean(self.epochs)))
        batch = examples if self.batch_size == "full" else np.full(len(examples), self.batch_size)
        return (self.steps or 0) * np.minimum(batch, examples) / np.maximum(examples, 1)
