"""Statistics of a partition. Legend: N clients, S examples, K classes."""

import numpy as np

from fedexp.parts.federation.partition import Partition

_BLOCK = 1 << 16  # clients counted at a time, to bound the memory


def class_counts(partition: Partition, labels: np.ndarray, classes: int) -> np.ndarray:
    """How many examples of each class each client holds, int32 [N, K]; `labels [S]` are those of all examples."""
    counts = np.empty((partition.clients, classes), dtype=np.int32)
    for start in range(0, partition.clients, _BLOCK):
        offsets = partition.offsets[start : start + _BLOCK + 1]
        block = counts[start : start + _BLOCK]
        row = np.repeat(np.arange(len(block)), np.diff(offsets))
        held = labels[partition.indices[offsets[0] : offsets[-1]]]
        block[:] = np.bincount(row * classes + held, minlength=block.size).reshape(block.shape)
    return counts


def label_skew(counts: np.ndarray) -> float:
    """Mean total variation between the labels of each non-empty client and all labels, from `counts [N, K]`.

    Total variation is half the L1 distance: 0 if every client mirrors the whole, 0.8 if each holds equal parts of two
    classes out of ten equal ones.
    """
    sizes = counts.sum(axis=1)
    everyone = counts.sum(axis=0) / sizes.sum()
    held = sizes > 0
    distance = np.abs(counts[held] / sizes[held, None] - everyone).sum(axis=1) / 2
    return float(distance.mean())


def size_gini(sizes: np.ndarray) -> float:
    """Gini coefficient of `sizes [N]`: 0 for equal sizes, (N - 1) / N if one client holds everything."""
    clients, total = len(sizes), int(sizes.sum())
    if total == 0:
        return 0.0
    rank = 2 * np.arange(1, clients + 1) - clients - 1
    return float((rank * np.sort(sizes).astype(np.float64)).sum() / (clients * total))
