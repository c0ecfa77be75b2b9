"""Clients that hold a few classes each, in uneven shares.

Source: Shamsian et al., "Personalized Federated Learning using Hypernetworks" (ICML 2021, arXiv 2103.04628): each
client holds `classes_per_client` distinct classes, drawn so that every class has nearly the same number of holders
(pick at random among the classes with the most free slots); alpha_ic ~ U(low, high) for each held pair, and client i
gets the share alpha_ic / sum_j alpha_jc of class c.

Deviations: the sum runs over the real holders. The authors' repository makes one slot too many for each class and
normalises over all of them, which leaves about a part in 21 (100 clients, two of ten classes each) to a third (10
clients) of the data unused. Counts are rounded down. The rest of a class goes, one example each, to the holders with
the largest remainders, at ties to the smallest client (`leftovers=dealt`), or is unused (`dropped`). Legend: N clients,
K classes.

`classes_per_client=all` gives every client every class, which is almost IID. A comparative study of client selection
(Granada, 2024) ran this variant with leftovers dropped: 60,000 examples over 300 clients in sizes of 174 to 217.
"""

from math import gcd
from typing import Annotated, Literal

import numpy as np

from fedexp.parts import ConfigError, Facts, Federation, Partition, Positive, Range
from fedexp.parts.federation.owners import apportion, deal


def draw_classes(clients: int, classes_per_client: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """The classes of each client, `[N, k]`: one after another, at random among those with the most free slots.

    K successive picks use each class once, so the picks are a chain of random permutations of the classes. Only a
    client that has picks from two of them constrains the second, which must not begin with classes that the client has.
    After K / gcd(K, held) clients a client and a permutation end together, so such blocks are independent and drawn in
    parallel.
    """
    common = gcd(classes_per_client, classes)
    blocks = -(-clients * common // classes)
    picks = np.empty((blocks, classes_per_client // common, classes), dtype=np.int64)
    for turn in range(classes_per_client // common):
        used = turn * classes % classes_per_client
        seam = picks[:, turn - 1, classes - used :]
        picks[:, turn] = _permutations(seam, classes_per_client - used, classes, rng)
    return picks.reshape(-1, classes_per_client)[:clients]


def _permutations(seam: np.ndarray, first_count: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """For each row of `seam` a permutation of the classes, whose first `first_count` entries are not in that row."""
    keys = rng.random((len(seam), classes))
    if not seam.shape[1]:
        return keys.argsort(axis=1)
    np.put_along_axis(keys, seam, 2.0, axis=1)
    first = keys.argsort(axis=1)[:, :first_count]
    keys = rng.random((len(seam), classes))
    np.put_along_axis(keys, first, np.arange(-first_count, 0.0)[None], axis=1)
    return keys.argsort(axis=1)


def shamsian_counts(
    totals: np.ndarray, client_classes: np.ndarray, alpha: np.ndarray, leftovers: str = "dealt"
) -> np.ndarray:
    """Examples of each class for each client, int32 [K, N]; `totals [K]`, `client_classes [N, h]`, `alpha [N, h]`."""
    counts = np.zeros((len(totals), len(client_classes)), dtype=np.int32)
    for label, total in enumerate(totals):
        holder, slot = np.nonzero(client_classes == label)
        counts[label, holder] = apportion(int(total), alpha[holder, slot], leftovers)
    return counts


def refuse_uncovered(
    clients: int, classes_per_client: int, classes: int, remedy: str = "classes_per_client=all"
) -> None:
    """Raises ConfigError where clients with this many classes each cannot cover all; `remedy` names a cure."""
    if classes_per_client > classes:
        raise ConfigError(
            f"federation.classes_per_client must be at most the {classes} classes of the dataset, got "
            f"{classes_per_client}; federation.{remedy} gives every client every class"
        )
    if clients * classes_per_client < classes:
        raise ConfigError(
            f"{clients} clients with federation.classes_per_client={classes_per_client} hold at most "
            f"{clients * classes_per_client} of {classes} classes and nobody would hold the rest; raise "
            "classes_per_client or scenario.clients"
        )


class Shamsian(Federation):
    """A few classes for each client, every class held by nearly the same number of clients."""

    needs_classes = True

    clients: Annotated[int, Range(1)]
    classes_per_client: Annotated[int, Range(1)] | Literal["all"] = 2
    low: Annotated[float, Positive] = 0.4
    high: Annotated[float, Positive] = 0.6
    leftovers: Literal["dealt", "dropped"] = "dealt"

    def check(self) -> None:
        if self.low > self.high:
            raise ConfigError(f"Shamsian.low must be at most high={self.high:g}, got {self.low:g}")

    def refuse(self, facts: Facts) -> None:
        self._classes_of_each_client(facts.classes)

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        client_classes = draw_classes(self.clients, self._classes_of_each_client(classes), classes, rng)
        totals, alpha = np.bincount(labels, minlength=classes), rng.uniform(self.low, self.high, client_classes.shape)
        return deal(labels, shamsian_counts(totals, client_classes, alpha, self.leftovers), rng)

    def _classes_of_each_client(self, classes: int) -> int:
        if self.classes_per_client == "all":
            return classes
        refuse_uncovered(self.clients, self.classes_per_client, classes)
        return self.classes_per_client
