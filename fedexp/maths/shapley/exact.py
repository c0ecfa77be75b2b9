"""Exact Shapley values from the utilities of all coalitions (Shapley 1953)."""

import math

import numpy as np


def exact(utility: np.ndarray) -> np.ndarray:
    """SV_k = (1/M) sum over S without k of [U(S + k) - U(S)] / C(M - 1, |S|), float64 [M].

    `utility [2^M]` is in the order of `all_coalitions`: player k is in coalition r where bit k of r is set.
    """
    players = len(utility).bit_length() - 1
    coalition = np.arange(len(utility))
    size = np.array([int(r).bit_count() for r in coalition])
    weight = np.array([1 / (players * math.comb(players - 1, s)) for s in range(players)])
    values = np.empty(players)
    for player in range(players):
        without = coalition[coalition >> player & 1 == 0]
        gain = utility[without | 1 << player] - utility[without]
        values[player] = (weight[size[without]] * gain).sum()
    return values
