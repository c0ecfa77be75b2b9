"""Marginal contributions along permutations of the players; their means are the sampled Shapley values.

Source of the truncation and of the guided permutations: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053, algorithm 1).
Antithetic permutations: Mitchell, Cooper, Frank & Holmes 2022 (arXiv 2104.12199), a permutation and its reverse.
Stratified ones: every player at every position equally often, as in the same paper's orthogonal designs and in Castro
et al. 2017; here a random Latin square, the cyclic shifts of one random permutation.
Deviations: a sweep's permutations are walked side by side, so that their new coalitions are evaluated in one batch;
credit goes to the client at the position, never to `id - 1`.
Legend: M players, P permutations.
"""

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities

GOLDEN = (5**0.5 - 1) / 2


def guided_permutations(players: int, rng: np.random.Generator) -> np.ndarray:
    """One sweep of GTG-Shapley, `[M, M]`: every player opens one permutation, the others follow in random order."""
    first = np.arange(players)[:, None]
    remaining = np.array([np.delete(np.arange(players), player) for player in range(players)]).reshape(players, -1)
    return np.concatenate([first, rng.permuted(remaining, axis=1)], axis=1)


def random_permutations(players: int, rng: np.random.Generator) -> np.ndarray:
    """M uniformly random permutations, `[M, M]`."""
    return rng.permuted(np.tile(np.arange(players), (players, 1)), axis=1)


def antithetic_permutations(players: int, rng: np.random.Generator) -> np.ndarray:
    """Random permutations, each followed by its reverse, `[M, M]`, or `[M + 1, M]` where M is odd."""
    forward = rng.permuted(np.tile(np.arange(players), ((players + 1) // 2, 1)), axis=1)
    return np.stack([forward, forward[:, ::-1]], axis=1).reshape(-1, players)


def latin_square(players: int, rng: np.random.Generator) -> np.ndarray:
    """A random Latin square `[M, M]`: every player once at every position.

    The shifts come in the order of the golden ratio's multiples, so that the positions of a player are spread evenly
    in the first few rows, too.
    """
    shift = np.argsort(np.argsort(np.arange(players) * GOLDEN % 1))
    return rng.permutation(players)[(np.arange(players) + shift[:, None]) % max(players, 1)]


def prefixes(permutations: np.ndarray) -> np.ndarray:
    """All prefixes of the permutations `[P, M]` as coalitions, bool `[P M, M]`: the first player, the first two, ..."""
    position = np.argsort(permutations, axis=1)
    return (position[:, None, :] <= np.arange(permutations.shape[1])[:, None]).reshape(-1, permutations.shape[1])


def walk(permutations: np.ndarray, utilities: Utilities, truncation: float) -> np.ndarray:
    """Marginal contribution of every player along every permutation `[P, M]`, as `[P, M]` with columns by player.

    Where the utility is within `truncation` of the full coalition's, the rest of the permutation counts as 0 and is not
    evaluated; 0 never truncates.
    """
    return counting_walk(permutations, utilities, truncation)[0]


def counting_walk(permutations: np.ndarray, utilities: Utilities, truncation: float) -> tuple[np.ndarray, float]:
    """The marginal contributions `[P, M]` of `walk`, and the share of steps that were truncated."""
    count, players = permutations.shape
    empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
    if truncation == 0:  # all are needed, so they are evaluated in one batch
        return _full_marginals(permutations, empty, utilities(prefixes(permutations))), 0.0
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


def _full_marginals(permutations: np.ndarray, empty: float, prefix_utilities: np.ndarray) -> np.ndarray:
    """Marginal contributions by player, from the utilities of all prefixes of the permutations."""
    gains = np.diff(prefix_utilities.reshape(permutations.shape), axis=1, prepend=empty)
    marginal = np.empty(permutations.shape)
    np.put_along_axis(marginal, permutations, gains, axis=1)
    return marginal
