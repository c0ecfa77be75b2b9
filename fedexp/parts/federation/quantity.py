"""Quantity skew: clients of very different size, each a random sample.

Source: Li, Diao, Chen & He, "Federated Learning on Non-IID Data Silos: An Experimental Study" (ICDE 2022, arXiv
2102.02079, section 4.3): q ~ Dir(beta, ..., beta) over the clients, client k gets the share q_k of the shuffled data.

Deviations: boundaries are rounded to the nearest example, not down. The authors' code draws again until every client
holds 10 examples; here `min_size` is that number (0: clients may be empty) and `retries` bounds the draws.
"""

from functools import partial
from typing import Annotated

import numpy as np

from fedexp.parts import Partition, Range
from fedexp.parts.federation.dirichlet import dirichlet_counts
from fedexp.parts.federation.minimum import RedrawnFederation
from fedexp.parts.federation.owners import split_by_sizes


class QuantitySkew(RedrawnFederation):
    """The smaller `beta`, the more the sizes differ."""

    beta: Annotated[float, Range(0, 1e9, low_open=True)] = 0.5

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        draw = partial(dirichlet_counts, np.array([len(labels)]), self.clients, self.beta, rng)
        (sizes,) = self.draw_until_filled(draw, len(labels), f"beta={self.beta:g}")
        return split_by_sizes(sizes, rng)
