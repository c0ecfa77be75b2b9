"""Marginal contributions along permutations of the players; their means are the sampled Shapley values.

Source of the truncation and of the guided permutations: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053, algorithm 1).
Deviations: a sweep's permutations are walked side by side, so that their new coalitions are evaluated in one batch;
credit goes to the client at the position, never to `id - 1`.
Legend: M players, P permutations.
"""

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities


def guided_permutations(players: int, rng: np.random.Generator) -> np.ndarray:
    """One sweep of GTG-Shapley, `[M, M]`: every player opens one permutation, the others follow in random order."""
    first = np.arange(players)[:, None]
    remaining = np.array([np.delete(np.arange(players), player) for player in range(players)]).reshape(players, -1)
    return np.concatenate([first, rng.permuted(remaining, axis=1)], axis=1)


def prefixes(permutations: np.ndarray) -> np.ndarray:
    """All prefixes of the permutations `[P, M]` as coalitions, bool `[P M, M]`: the first player, the first two, ..."""
    position = np.argsort(permutations, axis=1)
    return (position[:, None, :] <= np.arange(permutations.shape[1])[:, None]).reshape(-1, permutations.shape[1])


def walk(permutations: np.ndarray, utilities: Utilities, truncation: float) -> tuple[np.ndarray, float]:
    """Marginal contribution of every player along every permutation `[P, M]`, as `[P, M]` with columns by player.

    Where the utility is within `truncation` of the full coalition's, the rest of the permutation counts as 0 and is not
    evaluated; 0 never truncates. Also returns the share of steps that were truncated.
    """
    count, players = permutations.shape
    empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
    members = np.zeros((count, players), dtype=bool)
    rows, value = np.arange(count), np.full(count, empty)
    marginal, walked = np.empty((count, players)), 0
    for position in range(players):
        player = permutations[:, position]
        members[rows, player] = True
        going = np.abs(full - value) >= truncation
        walked += int(going.sum())
        following = value.copy()
        if going.any():
            following[going] = utilities(members[going])
        marginal[rows, player] = following - value
        value = following
    return marginal, 1 - walked / max(count * players, 1)
