"""Examples that clients hold out from training, to evaluate their own models on."""

import numpy as np

from fedexp.parts.federation.partition import Partition


def hold_out(
    partition: Partition, fraction: float, rng: np.random.Generator, labels: np.ndarray | None = None
) -> tuple[Partition, Partition]:
    """Splits the partition into the examples to train on and the held-out examples.

    Every example draws a number, and a client's lowest are held out: other clients' examples do not matter. With
    `labels [S]` of all examples a client holds out one of its classes after the other, that of its lowest number first.
    """
    if not fraction:
        return partition, Partition(np.zeros_like(partition.offsets), partition.indices[:0])
    draws = rng.random(int(partition.indices.max(initial=-1)) + 1)[partition.indices]
    sizes, client = partition.sizes, np.repeat(np.arange(partition.clients), partition.sizes)
    count = np.where(sizes > 1, np.maximum(1, np.floor(fraction * sizes + 1e-9)), 0)
    count = np.minimum(count, np.maximum(sizes - 1, 0))
    rank = np.empty(len(client), np.int64)
    turns = draws if labels is None else _lowest_of_class(draws, client, labels[partition.indices])
    rank[np.lexsort((draws, turns, client))] = np.arange(len(client)) - np.repeat(partition.offsets[:-1], sizes)
    mask = rank < count[client]
    return part_of(partition, ~mask, sizes - count), part_of(partition, mask, count)


def _lowest_of_class(draws: np.ndarray, client: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each example the lowest of `draws [S]` among those of its client and class, `[S]`."""
    _, kind = np.unique(client * (labels.max(initial=0) + 1) + labels, return_inverse=True)
    lowest = np.full(len(draws), np.inf)
    np.minimum.at(lowest, kind, draws)
    return lowest[kind]


def part_of(partition: Partition, mask: np.ndarray, sizes: np.ndarray) -> Partition:
    """The partition of the examples in the mask `[S]`; `sizes [N]` is how many of each client these are."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Partition(offsets, partition.indices[mask])
