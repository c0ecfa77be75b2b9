"""Makes a partition from the owner of each example.

Within a client the indices ascend, so a partition depends only on who holds which example. Legend: S examples, N
clients, K classes.
"""

import numpy as np

from fedexp.parts.federation.partition import Partition


def partition_by_owner(owner: np.ndarray, clients: int) -> Partition:
    """Lists the examples of each client, ascending; `owner` [S] is below `clients`, or equal to it for no owner."""
    offsets = np.zeros(clients + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=clients)[:clients], out=offsets[1:])
    return Partition(offsets, np.argsort(owner, kind="stable")[: offsets[-1]])


def deal(labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> Partition:
    """Gives `counts[c, k]` random examples of class c to client k.

    `labels` is [S], `counts` [K, N]; row c sums to the number of examples of class c, or to fewer: the others have no
    owner.
    """
    classes, clients = counts.shape
    by_class = np.argsort(labels.astype(np.min_scalar_type(classes)), kind="stable")  # narrow integers: radix sort
    ends = np.cumsum(np.bincount(labels, minlength=classes))
    owner = np.full(len(labels), clients, dtype=np.int32)
    numbers = np.arange(clients, dtype=np.int32)
    for members, shares in zip(np.split(by_class, ends[:-1]), counts, strict=True):
        owner[rng.permutation(members)[: shares.sum()]] = np.repeat(numbers, shares)
    return partition_by_owner(owner, clients)


def split_by_sizes(sizes: np.ndarray, rng: np.random.Generator) -> Partition:
    """Splits shuffled examples by `sizes [N]`: client k gets `sizes[k]` of them."""
    owner = np.empty(sizes.sum(), dtype=np.int32)
    owner[rng.permutation(len(owner))] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return partition_by_owner(owner, len(sizes))


def apportion(total: int, weights: np.ndarray, leftovers: str = "dealt") -> np.ndarray:
    """Divides `total` in proportion to `weights` [N], rounded down; the rest by largest remainder or to none."""
    exact = weights * (total / weights.sum())
    counts = np.floor(exact).astype(np.int64)
    remaining = total - int(counts.sum()) if leftovers == "dealt" else 0
    counts[np.argsort(counts - exact, kind="stable")[:remaining]] += 1
    return counts
