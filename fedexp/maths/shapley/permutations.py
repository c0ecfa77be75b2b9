"""Marginal contributions along permutations of the players: what sampled Shapley values are means of.

Source of the truncation and of the guided permutations: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053, algorithm 1).
Deviations: a sweep's permutations are walked side by side, so that their new coalitions are evaluated in one batch;
credit goes to the client at the position, never to `id - 1`.
Legend: M players, P permutations.
"""

import numpy as np

from fedexp.maths.shapley.utilities import Utilities


def guided(players: int, rng: np.random.Generator) -> np.ndarray:
    """One sweep of GTG-Shapley, `[M, M]`: every player opens one permutation, the others follow in random order."""
    first = np.arange(players)[:, None]
    others = np.array([np.delete(np.arange(players), player) for player in range(players)]).reshape(players, -1)
    return np.concatenate([first, rng.permuted(others, axis=1)], axis=1)


def shuffled(players: int, rng: np.random.Generator) -> np.ndarray:
    """As many uniformly random permutations, `[M, M]`."""
    return rng.permuted(np.tile(np.arange(players), (players, 1)), axis=1)


def walk(permutations: np.ndarray, utilities: Utilities, truncation: float) -> np.ndarray:
    """Marginal contribution of every player along every permutation, `[P, M]`, columns by player.

    Where the utility is within `truncation` of the full coalition's the rest of the permutation adds nothing and is
    not evaluated; 0 never truncates.
    """
    count, players = permutations.shape
    empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
    members = np.zeros((count, players), dtype=bool)
    rows, value = np.arange(count), np.full(count, empty)
    marginal = np.empty((count, players))
    for position in range(players):
        player = permutations[:, position]
        members[rows, player] = True
        going = np.abs(full - value) >= truncation
        following = value.copy()
        if going.any():
            following[going] = utilities(members[going])
        marginal[rows, player] = following - value
        value = following
    return marginal
