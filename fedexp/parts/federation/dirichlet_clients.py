"""Clients of equal size, each with a mixture of classes of its own.

Source: Hsu, Qi & Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification"
(2019, arXiv 1909.06335, section 3): client k draws q_k ~ Dir(alpha p), p being the shares of the classes in all data,
and takes its examples one by one, the class of each by q_k, without replacement.

What the paper leaves open: a class of which nothing is left has probability 0 from then on and the others keep their
proportions, as usual. Where nothing is left of any class that a client wants, it takes of what there is, each example
with the same chance. So the last clients follow their mixtures less than the first. Sizes differ by at most one, and
lower client numbers have the larger ones. The paper's alpha is the sum over classes: code that draws from
Dir(a, ..., a) has alpha = K a for K equal classes. Legend: S examples, N clients, K classes.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Federation, Partition, Range
from fedexp.parts.federation.dirichlet import dirichlet_draw
from fedexp.parts.federation.owners import deal


def draw_class_counts(size: int, mixture: np.ndarray, available: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws `size` examples for a client by its mixture `[K]`; returns the number of each class, `[K]`.

    `available [K]` is what there is, at least `size` in all. Draws of a class that has run out are made again.
    """
    counts = np.zeros_like(available)
    while (missing := size - int(counts.sum())) > 0:
        weights = np.where(counts < available, mixture, 0.0)
        if not weights.sum() > 0:
            return counts + rng.multivariate_hypergeometric(available - counts, missing)
        drawn = rng.multinomial(missing, weights / weights.sum())
        counts = np.minimum(counts + drawn, available)
    return counts


def mixture_counts(totals: np.ndarray, clients: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """How many examples of each class each client gets, int32 [K, N], of `totals [K]`; clients get equally many."""
    counts = np.zeros((len(totals), clients), dtype=np.int32)
    present, available, examples = np.flatnonzero(totals), totals.copy(), int(totals.sum())
    if not examples:
        return counts
    concentration = np.maximum(alpha * totals[present] / examples, np.finfo(float).tiny)
    mixture = np.zeros(len(totals))
    for client in range(clients):
        mixture[present] = dirichlet_draw(concentration, rng)
        size = examples // clients + (client < examples % clients)
        counts[:, client] = draw_class_counts(size, mixture, available, rng)
        available -= counts[:, client]
    return counts


class DirichletClients(Federation):
    """The smaller `alpha`, the fewer classes a client has; all have the same size."""

    needs_classes = True

    clients: Annotated[int, Range(1)]
    alpha: Annotated[float, Range(0, 1e9, low_open=True)] = 0.5

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        totals = np.bincount(labels, minlength=classes)
        return deal(labels, mixture_counts(totals, self.clients, self.alpha, rng), rng)
