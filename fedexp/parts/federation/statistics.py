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
        block_labels = labels[partition.indices[offsets[0] : offsets[-1]]]
        block[:] = np.bincount(row * classes + block_labels, minlength=block.size).reshape(block.shape)
    return counts


def label_distances(counts: np.ndarray) -> dict[str, dict[str, float]]:
    """How far the labels of the non-empty clients are from all labels, from `counts [N, K]`.

    Three distances from 0 (alike) to 1 (no label in common): total variation (half the L1 distance, 0.8 if
    each client holds equal parts of two classes out of ten equal ones), the square root of the Jensen-Shannon
    divergence to base 2, and Hellinger's. Of each the mean over clients, and the mean weighted by their sizes.
    """
    overall = counts.sum(axis=0) / counts.sum()
    nonempty = counts[counts.sum(axis=1) > 0]
    sizes = nonempty.sum(axis=1)
    blocks = [
        _distances(nonempty[start : start + _BLOCK] / sizes[start : start + _BLOCK, None], overall)
        for start in range(0, len(nonempty), _BLOCK)
    ]
    distances, weights = np.concatenate(blocks, axis=1), sizes / sizes.sum()
    names = ("total_variation", "jensen_shannon", "hellinger")
    return {
        name: {"mean": float(distance.mean()), "by_size": float(weights @ distance)}
        for name, distance in zip(names, distances, strict=True)
    }


def _distances(shares: np.ndarray, overall: np.ndarray) -> np.ndarray:
    """The three distances `[3, n]` of each row of `shares [n, K]` to `overall [K]`."""
    mixture = (shares + overall) / 2
    divergence = (_kl_divergence(shares, mixture) + _kl_divergence(overall, mixture)) / 2
    return np.stack(
        [
            np.abs(shares - overall).sum(axis=1) / 2,
            np.sqrt(np.maximum(0, divergence)),
            np.sqrt(np.square(np.sqrt(shares) - np.sqrt(overall)).sum(axis=1) / 2),
        ]
    )


def _kl_divergence(shares: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The Kullback-Leibler divergence of each row from that of `reference [N, K]`, in bits; 0 log 0 is 0."""
    ratio = np.divide(shares, reference, out=np.ones_like(reference), where=(shares > 0) & (reference > 0))
    return (shares * np.log2(ratio)).sum(axis=1)


def size_spread(sizes: np.ndarray) -> dict[str, float]:
    """Spread of `sizes [N]`: minimum, median, maximum, and the standard deviation over the mean."""
    mean = float(sizes.mean())
    ends = {"smallest": float(sizes.min()), "median": float(np.median(sizes)), "largest": float(sizes.max())}
    return {**ends, "variation": float(sizes.std()) / mean if mean else 0.0}


def size_gini(sizes: np.ndarray) -> float:
    """Gini coefficient of `sizes [N]`: 0 for equal sizes, (N - 1) / N if one client holds everything."""
    clients, total = len(sizes), int(sizes.sum())
    if total == 0:
        return 0.0
    rank = 2 * np.arange(1, clients + 1) - clients - 1
    return float((rank * np.sort(sizes).astype(np.float64)).sum() / (clients * total))
