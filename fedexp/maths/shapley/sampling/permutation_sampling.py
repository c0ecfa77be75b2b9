"""GTG-Shapley sweep by sweep: running means of marginal contributions, with their standard errors.

Source of the truncation and of the guided permutations: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053, algorithm 1).
Deviations: a sweep's permutations are walked side by side, so that the new coalitions of a position are evaluated in
one batch; credit goes to the client at the position, never to `id - 1`. If the previous sweep truncated at most
`RARELY` of its steps, the whole next sweep is evaluated in advance, with the same result; coalitions that it then does
not need are not counted.
Legend: M players, P permutations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.convergence import TESTS
from fedexp.maths.shapley.sampling.standard_error import standard_errors

RARELY = 0.05  # share of the steps of a sweep


@dataclass(frozen=True)
class SampledValues:
    """The marginal contributions `[P, M]` so far, in sweeps of M permutations, after a `share` of the budget."""

    marginal: np.ndarray
    share: float

    @cached_property
    def means(self) -> np.ndarray:
        """Running means `[P, M]`."""
        return self.marginal.cumsum(axis=0) / np.arange(1, len(self.marginal) + 1)[:, None]

    @property
    def values(self) -> np.ndarray:
        """The values `[M]`."""
        return self.means[-1]

    @property
    def errors(self) -> np.ndarray | None:
        """Their standard errors `[M]`; None if there are very few sweeps."""
        players = self.marginal.shape[1]
        return standard_errors(self.marginal.reshape(-1, players, players))

    def has_converged(self, test: str) -> bool:
        """Whether the running means have converged by one of the published tests."""
        return TESTS[test](self.means)


def run_sweeps(
    utilities: Utilities, permutations: int, at_most: int | None, truncation: float, rng: np.random.Generator
) -> Iterator[SampledValues]:
    """Yields better and better estimates until permutations or coalitions are spent; the first sweep is always made."""
    players, truncates_often = utilities.players, truncation > 0
    marginal = np.zeros((0, players))
    while len(marginal) < permutations:
        sweep = guided_permutations(players, rng)
        steps = prefixes(sweep)
        if at_most and len(marginal) and utilities.evaluated_count + utilities.count_missing(steps) > at_most:
            return
        if not truncates_often:
            utilities.prefetch(steps)
        new_marginals, truncated = walk(sweep, utilities, truncation)
        truncates_often = truncated > RARELY
        marginal = np.concatenate([marginal, new_marginals])
        spent = utilities.evaluated_count / at_most if at_most else 0.0
        yield SampledValues(marginal, max(spent, len(marginal) / permutations))


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
