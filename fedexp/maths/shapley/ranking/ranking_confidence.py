"""How certain a selector's choice of the best clients is, given the errors of their scores.

The n clients with the highest scores are certainly the true best n if, for some threshold, all of them truly lie above
it and all others below. A client is on the wrong side with probability Phi(-|score - threshold| / error). The sum of
these over the clients bounds the chance that the set is wrong (Bonferroni's inequality, which assumes nothing about how
the errors depend on each other). The threshold, between the lowest score inside and the highest outside, is the one
with the least bound. This adds N terms where comparing pairs would add n (N - n). If the test is made L times and the
first success stops, it must reach 1 - sure <= (1 - confidence) / L.
Legend: N clients.
"""

import numpy as np
from scipy.special import ndtr

THRESHOLDS = 65  # tried between the two scores at the border, both included


def top_confidence(scores: np.ndarray, errors: np.ndarray, count: int) -> float | None:
    """Lower bound of the confidence that the `count` largest `scores [N]` truly are; None if an error is unknown.

    `errors [N]` are standard errors; 0 for what is certain, NaN for what is unknown.
    """
    if np.isnan(errors).any():
        return None
    if count >= len(scores) or not errors.any():
        return 1.0
    order = np.argpartition(-scores, count - 1)
    inside, outside = order[:count], order[count:]
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


def is_settled(reached: float | None, confidence: float, looks: int = 1) -> bool:
    """Whether the confidence `reached` is enough to stop, if the test is made up to `looks` times."""
    return reached is not None and 1 - reached <= (1 - confidence) / looks


def mean_variance(variance: np.ndarray, count: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Variances `[N]` of running means after one more estimate each, `((n - 1)^2 v + e^2) / n^2`.

    `variance [N]` is v, `errors [N]` are the new estimates' e, and `count [N]` is n, the new estimate included.
    """
    return ((count - 1) ** 2 * variance + errors**2) / count**2
