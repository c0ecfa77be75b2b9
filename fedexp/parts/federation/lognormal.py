"""A few classes a client in log-normal amounts: the 1,000 clients of FedProx's MNIST.

Source: Li et al., "Federated Optimization in Heterogeneous Networks" (MLSys 2020, arXiv 1812.06127), its code for
MNIST, which FedML's and FLUTE's tables use as well: client k holds the classes k, k + 1, ... (modulo K), five examples
of each. What is left of a class is divided among its holders in proportion to draws of LogNormal(0, 2).

Deviations: there the amounts are rounded down, and a client whose amount does not fit gets none of it, so that a few
examples stay unused; here the rest goes, one example each, to the largest remainders. There the training and the test
images of MNIST are divided together, and each client keeps a tenth of its own for testing
(`evaluation.personal_fraction=0.1`); here the test data stay with the server. A class with too few examples gives each
holder the same smaller number first. Fewer clients than classes begin at classes that are evenly apart.

Legend: S examples, N clients, K classes.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Partition, Range
from fedexp.parts.federation.classes import Classes
from fedexp.parts.federation.owners import apportion, deal


def neighbouring_classes(clients: int, classes_per_client: int, classes: int) -> np.ndarray:
    """The classes of each client, `[N, k]`: from k on, modulo K; with fewer clients than classes, evenly apart."""
    first = np.arange(clients) * max(1, classes / clients)
    return (first.astype(np.int64)[:, None] + np.arange(classes_per_client)) % classes


def lognormal_counts(totals: np.ndarray, client_classes: np.ndarray, base: int, weights: np.ndarray) -> np.ndarray:
    """Examples of each class for each client, int32 [K, N]; `totals [K]`, `client_classes [N, h]`, `weights [N, h]`."""
    counts = np.zeros((len(totals), len(client_classes)), dtype=np.int32)
    for label, total in enumerate(totals.tolist()):
        holder, slot = np.nonzero(client_classes == label)
        first = min(base, total // len(holder))
        counts[label, holder] = first + apportion(total - first * len(holder), weights[holder, slot])
    return counts


class LogNormal(Classes):
    """The larger `sigma`, the more the sizes differ."""

    base: Annotated[int, Range(0)] = 5
    sigma: Annotated[float, Range(0, 100, low_open=True)] = 2.0

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        client_classes = neighbouring_classes(self.clients, self.classes_per_client, classes)
        weights = rng.lognormal(0.0, self.sigma, client_classes.shape)
        totals = np.bincount(labels, minlength=classes)
        return deal(labels, lognormal_counts(totals, client_classes, self.base, weights), rng)
