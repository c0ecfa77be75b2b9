"""Permutation sampling, sweep by sweep: running means of marginal contributions, with their standard errors.

A sweep is M permutations (M + 1 antithetic ones where M is odd), or fewer where the bound on coalitions leaves no
room for several. Without truncation all coalitions of a sweep are evaluated in one batch. GTG-Shapley evaluates one
position of all permutations at a time. If the previous sweep truncated at most `RARELY` of its steps, the whole next
sweep is evaluated in advance, with the same result; coalitions that it then does not need are not counted.
Legend: M players, P permutations, T sweeps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.convergence import TESTS
from fedexp.maths.shapley.sampling.permutations import (
    antithetic_permutations,
    counting_walk,
    guided_permutations,
    latin_square,
    prefixes,
    random_permutations,
)
from fedexp.maths.shapley.sampling.standard_error import standard_errors

RARELY = 0.05  # share of the steps of a sweep
SEVERAL = 8  # sweeps that should fit into the bound


@dataclass(frozen=True)
class SweepDesign:
    """How a sweep is drawn: rows of a unit (0: the whole sweep), and whether each row is a stratum of its own."""

    draw: Callable[[int, np.random.Generator], np.ndarray]
    unit: int
    strata: bool = False
    truncates: bool = False


SWEEP_DESIGNS = {
    "gtg": SweepDesign(guided_permutations, 1, strata=True, truncates=True),
    "permutations": SweepDesign(random_permutations, 1),
    "antithetic": SweepDesign(antithetic_permutations, 2),
    "stratified": SweepDesign(latin_square, 0),
}


@dataclass(frozen=True)
class SampledValues:
    """The marginal contributions `[P, M]` so far, in sweeps of `rows`, after a `share` of the budget."""

    marginal: np.ndarray
    rows: int
    design: SweepDesign
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
        """Their standard errors `[M]`; None if there are very few units."""
        strata = self.rows if self.design.strata else 1
        unit = self.design.unit or self.rows
        return standard_errors(self.marginal.reshape(-1, strata, unit, self.marginal.shape[1]).mean(axis=2))

    def has_converged(self, test: str) -> bool:
        """Whether the running means have converged by one of the published tests."""
        return TESTS[test](self.means)


def run_sweeps(
    utilities: Utilities,
    design: SweepDesign,
    permutations: int,
    at_most: int | None,
    truncation: float,
    rng: np.random.Generator,
) -> Iterator[SampledValues]:
    """Yields better and better estimates until permutations or coalitions are spent; the first sweep is always made."""
    players = utilities.players
    truncation, often = truncation if design.truncates else 0.0, True
    rows = sweep_rows(design, players, at_most)
    marginal = np.zeros((0, players))
    while len(marginal) < permutations:
        sweep = design.draw(players, rng)[:rows]
        steps = prefixes(sweep)
        if at_most and len(marginal) and utilities.evaluated_count + utilities.count_missing(steps) > at_most:
            return
        if truncation and not often:
            utilities.prefetch(steps)
        new_marginals, truncated = counting_walk(sweep, utilities, truncation)
        often = truncated > RARELY
        marginal = np.concatenate([marginal, new_marginals])
        spent = utilities.evaluated_count / at_most if at_most else 0.0
        yield SampledValues(marginal, len(sweep), design, max(spent, len(marginal) / permutations))


def sweep_rows(design: SweepDesign, players: int, at_most: int | None) -> int:
    """Permutations of a sweep: all, or as many as let several sweeps fit into the bound."""
    full = players + (design.unit == 2 and players % 2)
    if at_most is None or design.strata:
        return full
    remaining = (at_most - 2) // max(players - 1, 1)
    rows = max(remaining // SEVERAL, 1)
    return min(full, max(rows - rows % 2, 2) if design.unit == 2 else rows)
