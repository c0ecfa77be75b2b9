"""How uneven the labels of clients are."""

import numpy as np

from fedexp.parts.federation.statistics import label_distances


def label_skew(counts: np.ndarray) -> float:
    """Mean total variation between the labels of each non-empty client and all labels, from `counts [N, K]`."""
    return label_distances(counts)["total_variation"]["mean"]
