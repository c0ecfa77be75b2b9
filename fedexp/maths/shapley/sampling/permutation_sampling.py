"""GTG-Shapley sweep by sweep: running means of marginal contributions, with their standard errors.

A sweep is M permutations, each opened by another player. One position of all permutations is evaluated at a time. If
the previous sweep truncated at most `RARELY` of its steps, the whole next sweep is evaluated in advance, with the same
result; coalitions that it then does not need are not counted.
Legend: M players, P permutations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.convergence import TESTS
from fedexp.maths.shapley.sampling.permutations import guided_permutations, prefixes, walk
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
