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


def power_law_sizes(examples: int, clients: int, exponent: float) -> np.ndarray:
    """Sizes `[N]` in proportion to 1, 2^-exponent, 3^-exponent, ..., that sum to `examples`."""
    return apportion(examples, np.arange(1, clients + 1) ** -float(exponent))


class PowerLaw(Federation):
    """The larger `exponent`, the more the sizes differ; client 0 is the largest."""

    clients: Annotated[int, Range(1)]
    exponent: Annotated[float, Range(0, 1e9)] = 1.0

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        return split_by_sizes(power_law_sizes(len(labels), self.clients, self.exponent), rng)
