"""Sizes that grow with the client's number, each client a random sample.

Source: LinearPartitioner, SquarePartitioner and ExponentialPartitioner of Flower Datasets (flwr-datasets 0.5): of N
clients numbered from 1, client k gets a share in proportion to k, k^2 or e^k.

Deviation: there the rest that rounding down leaves goes to the largest client; here, one example each, to the largest
remainders.
"""

from typing import Annotated, Literal

import numpy as np

from fedexp.parts import Federation, Partition, Range
from fedexp.parts.federation.owners import apportion, split_by_sizes


class Sizes(Federation):
    """The last client is the largest."""

    clients: Annotated[int, Range(1)]
    growth: Literal["linear", "square", "exponential"] = "linear"

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        number = np.arange(1, self.clients + 1, dtype=np.float64)
        law = {"linear": number, "square": number**2, "exponential": np.exp(number - self.clients)}
        return split_by_sizes(apportion(len(labels), law[self.growth]), rng)
