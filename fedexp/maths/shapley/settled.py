"""Whether the clients that a selector will take are settled, although their scores are known with errors only.

The top n of the scores are certainly the top n of the true scores if for some threshold every one of them truly lies
above it and every other client below. A client misses its side with probability Phi(-|score - threshold| / error); the
sum of these over the clients (Bonferroni's inequality: nothing is assumed of how the errors depend on each other)
bounds the chance that the set is wrong, and the threshold is the one between the last that is in and the first that is
out for which the bound is least. So N terms are added where comparing pairs would add n (N - n). Who looks L times
and stops at the first success asks for 1 - sure <= (1 - confidence) / L.
Legend: N clients.
"""

import numpy as np
from scipy.special import ndtr

THRESHOLDS = 65  # tried between the two scores at the border, both included


def top_sure(scores: np.ndarray, errors: np.ndarray, count: int) -> float | None:
    """Least confidence that the `count` largest of the scores `[N]` truly are; None where an error is unknown.

    `errors [N]` are standard errors; 0 for what is certain, NaN for what is unknown.
    """
    if np.isnan(errors).any():
        return None
    if count >= len(scores) or not errors.any():
        return 1.0
    place = np.argpartition(-scores, count - 1)
    inside, outside = place[:count], place[count:]
    lowest, highest = float(scores[inside].min()), float(scores[outside].max())
    if not np.isfinite([lowest, highest]).all():
        return 1.0 if lowest > highest else 0.0
    side = np.ones(len(scores))
    side[outside] = -1
    risky = np.flatnonzero(errors)
    least = np.inf
    for threshold in np.linspace(highest, lowest, THRESHOLDS):
        distance = side[risky] * (scores[risky] - threshold) / errors[risky]
        least = min(least, float(ndtr(-distance).sum()))
    return max(0.0, 1.0 - least)


def is_settled(sure: float | None, confidence: float, looks: int = 1) -> bool:
    """Whether this is sure enough to stop, if it may be looked at so many times."""
    return sure is not None and 1 - sure <= (1 - confidence) / looks


def mean_variance(variance: np.ndarray, count: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Variance of running means that take in one more estimate, `((n - 1)^2 v + e^2) / n^2`; `count` is n, with it."""
    return ((count - 1) ** 2 * variance + errors**2) / count**2
