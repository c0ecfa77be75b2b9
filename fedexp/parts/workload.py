"""How long clients train in a round, and in which batches."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.part import Part, Range


@dataclass(frozen=True, kw_only=True)
class Workload(Part):
    """A number of epochs, or a number of steps."""

    epochs: Annotated[int, Range(1)] | None = 1
    steps: Annotated[int, Range(1)] | None = None
    batch_size: Annotated[int, Range(1)] | Literal["full"] = 20
    shuffle: bool = True
    drop_last: bool = False

    def check(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ConfigError(
                f"{type(self).__name__}.epochs and steps exclude each other, got epochs={self.epochs} and "
                f"steps={self.steps}; set one of them to null"
            )

    def whole_steps(self, examples: np.ndarray) -> np.ndarray:
        """Steps in a round of clients with `examples [n]`, partial batches dropped, int64 [n]."""
        size = np.maximum(examples, 1) if self.batch_size == "full" else self.batch_size
        per_epoch = examples // size
        return per_epoch * self.epochs if self.epochs is not None else (per_epoch > 0) * (self.steps or 0)
