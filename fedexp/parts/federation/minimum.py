"""Federations that are drawn again until every client holds enough examples."""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from fedexp.parts import ConfigError, Facts, Federation, Range


class RedrawnFederation(Federation):
    """Every client holds at least `min_size` examples (0: clients may be empty), in one of 1 + `retries` draws."""

    clients: Annotated[int, Range(1)]
    min_size: Annotated[int, Range(0)] = 0
    retries: Annotated[int, Range(0)] = 100

    def refuse(self, facts: Facts) -> None:
        self._require(facts.train_size)

    def draw_until_filled(self, draw: Callable[[], np.ndarray], examples: int, setting: str) -> np.ndarray:
        """The first draw `[K, N]` of all `examples` in which the sum of every column is `min_size` or more.

        Raises:
            ConfigError: there is none; `setting` is the key and the value by which it was drawn.
        """
        self._require(examples)
        best = 0
        for _ in range(1 + self.retries):
            counts = draw()
            smallest = int(counts.sum(axis=0).min())
            if smallest >= self.min_size:
                return counts
            best = max(best, smallest)
        raise ConfigError(
            f"federation.min_size={self.min_size} was not reached with {setting}, {self.clients} clients: the best of "
            f"{1 + self.retries} draws left its smallest client with {best}; raise {setting.partition('=')[0]} or "
            "retries, or lower min_size or scenario.clients"
        )

    def _require(self, examples: int) -> None:
        """Raises ConfigError where there are too few examples for the minimum."""
        if self.min_size * self.clients > examples:
            raise ConfigError(
                f"federation.min_size={self.min_size} for {self.clients} clients needs {self.min_size * self.clients} "
                f"examples, but there are {examples}; lower min_size or scenario.clients"
            )
