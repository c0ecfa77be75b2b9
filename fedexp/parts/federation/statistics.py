"""What a partition looks like in numbers. Legend: N clients, K classes."""

import numpy as np

from fedexp.parts.federation.partition import Partition

_BLOCK = 1 << 16  # clients counted at a time: bounds the memory beside the result


def class_counts(partition: Partition, labels: np.ndarray, classes: int) -> np.ndarray:
    """How many examples of each class each client holds, int32 [N, K]."""
    counts = np.empty((partition.clients, classes), dtype=np.int32)
    for start in range(0, partition.clients, _BLOCK):
        offsets = partition.offsets[start : start + _BLOCK + 1]
        block = counts[start : start + _BLOCK]
        row = np.repeat(np.arange(len(block)), np.diff(offsets))
        held = labels[partition.indices[offsets[0] : offsets[-1]]]
        block[:] = np.bincount(row * classes + held, minlength=block.size).reshape(block.shape)
    return counts


def label_skew(counts: np.ndarray) -> float:
    """Mean over the non-empty clients of the total variation between their labels and all labels.

    Total variation is half the L1 distance: 0 where every client mirrors the whole, .8 where each holds equal parts of
    two classes out of ten equal ones.
    """
    sizes = counts.sum(axis=1)
    everyone = counts.sum(axis=0) / sizes.sum()
    held = sizes > 0
    distance = np.abs(counts[held] / sizes[held, None] - everyone).sum(axis=1) / 2
    return float(distance.mean())


def size_gini(sizes: np.ndarray) -> float:
    """Gini coefficient of the client sizes: 0 for equal sizes, (N - 1) / N where one client holds everything."""
    clients, total = len(sizes), int(sizes.sum())
    if total == 0:
        return 0.0
    rank = 2 * np.arange(1, clients + 1) - clients - 1
    return float((rank * np.sort(sizes).astype(np.float64)).sum() / (clients * total))
