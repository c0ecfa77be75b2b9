"""How well two groupings of the same clients agree."""

import numpy as np


def adjusted_rand(true_groups: np.ndarray | None, clusters: np.ndarray) -> float | None:
    """The adjusted Rand index (Hubert, Arabie 1985) of `true_groups [n]` and `clusters [n]`: 1 if equal, 0 by chance.

    Clients without a group (-1) are left out; None if no group is known.
    """
    if true_groups is None or not (true_groups >= 0).any():
        return None
    from sklearn.metrics import adjusted_rand_score  # here, because it takes a second to import

    return float(adjusted_rand_score(true_groups[true_groups >= 0], clusters[true_groups >= 0]))
