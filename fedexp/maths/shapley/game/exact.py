"""Exact Shapley values from the utilities of all coalitions (Shapley 1953)."""

import math

import numpy as np

from fedexp.maths.shapley.game.utilities import all_coalitions


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


def exact_weights(players: int) -> np.ndarray:
    """c_k(S) of SV_k = sum over S of c_k(S) U(S), float64 `[2^M, M]`: what `exact` weighs each utility by."""
    members = all_coalitions(players)
    size = members.sum(axis=1)
    weight = np.array([0.0] + [1 / (players * math.comb(players - 1, s)) for s in range(players)] + [0.0])
    return np.where(members, weight[size][:, None], -weight[size + 1][:, None])
