"""Sizes that fall by a power law, each client a random sample.

Source: the unbalanced federations of Li et al., "Federated Optimization in Heterogeneous Networks" (FedProx, MLSys
2020, arXiv 1812.06127), where the number of examples of a client follows a power law; here as Zipf's: client k (from 1)
gets a share in proportion to k^-exponent. Exponent 0 gives equal sizes. The paper's own MNIST federation, whose code
draws from a log-normal distribution, is `federation=lognormal`.

Shares are rounded down; the remaining examples go, one each, to the largest remainders.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Federation, Partition, Range
from fedexp.parts.federation.owners import apportion, split_by_sizes


class PowerLaw(Federation):
    """The larger `exponent`, the more the sizes differ; client 0 is the largest."""

    clients: Annotated[int, Range(1)]
    exponent: Annotated[float, Range(0, 1e9)] = 1.0

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        shares = np.arange(1, self.clients + 1) ** -self.exponent
        return split_by_sizes(apportion(len(labels), shares), rng)
