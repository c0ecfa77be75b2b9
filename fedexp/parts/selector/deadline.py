"""The greedy algorithm that fills a round before its deadline; FedCS and HybridFL differ only in their cost.

Source: FedCS (Nishio & Yonetani 2019, arXiv 1804.08333, algorithm 3), with the corrections of the selection thesis'
text: T_inc is an increment, every candidate is tried (a rejected one does not end the loop), the limit is strict, and
Theta, the time of the uploads, excludes distribution. With `counting_distribution` the remaining wait of a candidate is
computed from a Theta that includes it, as in the thesis' code.
Legend: n candidates, K classes.
"""

from collections.abc import Callable

import numpy as np

from fedexp.core.client_resources import Resources

Dispersion = Callable[[np.ndarray], np.ndarray]  # from class counts [n, K] to the unevenness of each row [n]


def increments(resources: Resources, distribution_s: float, elapsed_s: float) -> np.ndarray:
    """T_inc(S, k) = T_d(S + k) - T_d(S) + t_UL_k + max(0, t_UD_k - Theta) of every candidate, `[n]`."""
    waiting = np.maximum(0.0, resources.update_s - elapsed_s)
    return np.maximum(resources.download_s - distribution_s, 0.0) + resources.upload_s + waiting


def fill_round(
    resources: Resources,
    round_s: float,
    counts: np.ndarray | None = None,
    dispersion: Dispersion | None = None,
    *,
    counting_distribution: bool = False,
) -> np.ndarray:
    """Positions of the accepted candidates in the order of acceptance, which is the order of upload.

    In each step the candidate with the smallest T_inc is tried, or with the smallest T_inc times
    `dispersion(counts[chosen].sum() + counts[k])` if `counts [n, K]` are given; ties go to the smaller T_inc, then to
    the smaller position. It is accepted if the round then still ends before `round_s`. A candidate that does not fit
    once never fits again, because both times only grow.
    """
    candidates, chosen = np.arange(len(resources.bandwidth)), []
    distribution_s, elapsed_s = 0.0, 0.0
    chosen_counts = 0 if counts is None else np.zeros(counts.shape[1], dtype=np.int64)
    while True:
        now = resources.where(candidates)
        arrival = np.maximum(elapsed_s, now.update_s) + now.upload_s
        fits = resources.overhead_s + np.maximum(distribution_s, now.download_s) + arrival < round_s
        candidates, now, arrival = candidates[fits], now.where(fits), arrival[fits]
        if not len(candidates):
            return np.array(chosen, dtype=np.int64)
        busy_s = elapsed_s + distribution_s if counting_distribution else elapsed_s
        cost = increment = increments(now, distribution_s, busy_s)
        if counts is not None and dispersion is not None:
            cost = increment * dispersion(chosen_counts + counts[candidates])
        best = _cheapest(cost, increment)
        chosen.append(int(candidates[best]))
        chosen_counts = chosen_counts if counts is None else chosen_counts + counts[candidates[best]]
        distribution_s, elapsed_s = max(distribution_s, float(now.download_s[best])), float(arrival[best])
        candidates = np.delete(candidates, best)


def _cheapest(cost: np.ndarray, increment: np.ndarray) -> int:
    ties = np.flatnonzero(cost == cost.min())
    return int(ties[np.argmin(increment[ties])])


def variance_over_mean(counts: np.ndarray) -> np.ndarray:
    """Variance over mean, `[n]`, of each row of class counts `[n, K]`; 0 for a row of zeros. Prefers small clients."""
    mean = counts.mean(axis=1)
    return np.divide(counts.var(axis=1), mean, out=np.zeros_like(mean), where=mean > 0)


def std_over_mean(counts: np.ndarray) -> np.ndarray:
    """Standard deviation over mean, `[n]`, of each row of class counts `[n, K]`; 0 for a row of zeros."""
    mean = counts.mean(axis=1)
    return np.divide(counts.std(axis=1), mean, out=np.zeros_like(mean), where=mean > 0)
