"""Clients that hold exactly k classes, each class in equal shares.

Source: the quantity-based label imbalance `#C=k` of Li, Diao, Chen & He, "Federated Learning on Non-IID Data Silos: An
Experimental Study" (ICDE 2022, arXiv 2102.02079, section 4.1): every client is given k different classes at random, and
the examples of a class are divided equally among the clients that have it.

As in the authors' code the first class of client i is i modulo K, so that every class has a holder once N >= K.
Deviation: with fewer clients those classes that no client has first are handed out before others are drawn, so that
they cover all classes; the authors' code fails where its draws leave a class without a client. Shares of a class differ
by at most one example. Legend: N clients, K classes.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Facts, Federation, Partition, Range
from fedexp.parts.federation.owners import deal
from fedexp.parts.federation.shamsian import refuse_uncovered, shamsian_counts


def random_classes(clients: int, classes_per_client: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """The classes of each client, `[N, k]`: i modulo K, then those that still lack a holder, then random ones."""
    keys = rng.random((clients, classes))  # a client holds the classes with the lowest
    keys[np.arange(clients), np.arange(clients) % classes] = -2
    lacking = rng.permutation(np.arange(clients, classes))
    holder = np.arange(len(lacking)) // max(1, classes_per_client - 1)
    keys[holder, lacking] = -1
    return keys.argsort(axis=1)[:, :classes_per_client]


class Classes(Federation):
    """`classes_per_client` classes for every client."""

    needs_classes = True

    clients: Annotated[int, Range(1)]
    classes_per_client: Annotated[int, Range(1)] = 2

    def refuse(self, facts: Facts) -> None:
        remedy = f"classes_per_client={facts.classes}"
        refuse_uncovered(self.clients, self.classes_per_client, facts.classes, remedy)

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        client_classes = random_classes(self.clients, self.classes_per_client, classes, rng)
        totals = np.bincount(labels, minlength=classes)
        return deal(labels, shamsian_counts(totals, client_classes, np.ones(client_classes.shape)), rng)
