"""Positions of the smallest, largest or randomly drawn values, in O(N) work; ties go to the smallest position."""

import numpy as np


def lowest(values: np.ndarray, count: int) -> np.ndarray:
    """The positions `[count]` of the smallest of `values [N]`, ascending; NaN counts as largest."""
    if count >= len(values):
        return np.arange(len(values))
    if count <= 0:
        return np.zeros(0, dtype=np.int64)
    keys = np.where(np.isnan(values), np.inf, values)
    edge = np.partition(keys, count - 1)[count - 1]
    below = np.flatnonzero(keys < edge)
    ties = np.flatnonzero(keys == edge)[: count - len(below)]
    return np.sort(np.concatenate([below, ties]))


def highest(values: np.ndarray, count: int) -> np.ndarray:
    """The positions `[count]` of the largest of `values [N]`, ascending; NaN counts as smallest."""
    return lowest(-values, count)


def exclude_busy(scores: np.ndarray, busy: np.ndarray) -> np.ndarray:
    """A copy of `scores [N]` with -infinity for the clients `busy [b]`, who cannot be asked."""
    scores = scores.astype(float)
    scores[busy] = -np.inf
    return scores


def weighted_draw(log_weight: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Up to `count` positions, ascending, drawn one after another in proportion to exp(log_weight), `log_weight [N]`.

    Weights are renormalised after each draw: the largest of independently Gumbel-perturbed log weights have exactly
    this distribution (Efraimidis & Spirakis 2006 in logarithms), and nothing underflows. A log weight of -inf or NaN is
    never drawn, so there may be fewer.
    """
    possible = np.flatnonzero(log_weight > -np.inf)
    return possible[highest(log_weight[possible] + rng.gumbel(size=len(possible)), count)]
