"""Label skew by a Dirichlet draw for each class.

Source: the distribution-based label imbalance of Yurochkin et al., "Bayesian Nonparametric Federated Learning of Neural
Networks" (ICML 2019, arXiv 1905.12022), as in Li et al., "Federated Learning on Non-IID Data Silos" (ICDE 2022, arXiv
2102.02079): for each class c draw p_c ~ Dir(alpha, ..., alpha) over the clients and give client k the share p_ck of the
examples of class c.

Counts: the boundaries between clients are the cumulative shares times the size of the class, rounded to the nearest
integer, so every example has an owner and each client is within one example of its share.

Deviations: the usual code rounds the boundaries down, which costs the first client and favours the last. It also gives
nothing more to a client that already holds S / N examples; that is not in the equation, and not done here. It draws
until every client holds 10 examples; here `min_size` is that number (0: clients may be empty) and `retries` bounds the
draws. Legend: S examples, N clients, K classes.
"""

from functools import partial
from typing import Annotated

import numpy as np

from fedexp.parts import Partition, Range
from fedexp.parts.federation.minimum import RedrawnFederation
from fedexp.parts.federation.owners import deal


def dirichlet_shares(clients: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """One draw of Dir(alpha, ..., alpha), `[N]`; works for every alpha > 0, however small."""
    return dirichlet_draw(np.full(clients, alpha), rng)


def dirichlet_draw(alpha: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw of Dir(alpha), `[n]`, for `alpha [n]` above zero.

    For alpha below one, a gamma variable is drawn as Gamma(alpha + 1) U^(1 / alpha), whose logarithm never underflows.
    Logarithms are multiplied by the smallest alpha until the maximum has been subtracted, so that they stay finite.
    """
    if alpha.min() >= 1:
        gamma = rng.standard_gamma(alpha)
        return gamma / gamma.sum()
    least = alpha.min()
    scaled = least * np.log(rng.standard_gamma(alpha + 1)) - rng.standard_exponential(len(alpha)) * (least / alpha)
    with np.errstate(over="ignore"):
        weight = np.exp((scaled - scaled.max()) / least)
    return weight / weight.sum()


def dirichlet_counts(totals: np.ndarray, clients: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """How many examples of each class each client gets, int32 [K, N]; row c sums to `totals[c]`, of `totals [K]`."""
    counts = np.empty((len(totals), clients), dtype=np.int32)
    for row, total in zip(counts, totals, strict=True):
        reached = np.cumsum(dirichlet_shares(clients, alpha, rng))
        row[:] = np.diff(np.rint(reached / reached[-1] * total), prepend=0)
    return counts


class Dirichlet(RedrawnFederation):
    """The smaller `alpha`, the fewer classes a client has and the more the sizes differ."""

    needs_classes = True

    alpha: Annotated[float, Range(0, 1e9, low_open=True)] = 0.5

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        totals = np.bincount(labels, minlength=classes)
        draw = partial(dirichlet_counts, totals, self.clients, self.alpha, rng)
        return deal(labels, self.draw_until_filled(draw, len(labels), f"alpha={self.alpha:g}"), rng)
