"""Quantity skew: clients of very different size, each a random sample.

Source: Li, Diao, Chen & He, "Federated Learning on Non-IID Data Silos: An Experimental Study" (ICDE 2022, arXiv
2102.02079, section 4.3): q ~ Dir(beta, ..., beta) over the clients, client k gets the share q_k of the shuffled data.

Deviations: boundaries are rounded to the nearest example, not down. The authors' code draws again until every client
holds 10 examples; here `min_size` is that number (0: clients may be empty) and `retries` bounds the draws.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Facts, Federation, Partition, Range
from fedexp.parts.federation.dirichlet import dirichlet_counts
from fedexp.parts.federation.minimum import draw_until_filled, require
from fedexp.parts.federation.owners import split_by_sizes


class QuantitySkew(Federation):
    """The smaller `beta`, the more the sizes differ."""

    clients: Annotated[int, Range(1)]
    beta: Annotated[float, Range(0, 1e9, low_open=True)] = 0.5
    min_size: Annotated[int, Range(0)] = 0
    retries: Annotated[int, Range(0)] = 100

    def refuse(self, facts: Facts) -> None:
        require(self.min_size, self.clients, facts.train_size)

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        require(self.min_size, self.clients, len(labels))
        totals, description = np.array([len(labels)]), f"beta={self.beta:g}, {self.clients} clients"
        (sizes,) = draw_until_filled(
            lambda: dirichlet_counts(totals, self.clients, self.beta, rng), self.min_size, 1 + self.retries, description
        )
        return split_by_sizes(sizes, rng)
