"""Shapley values of a round by the method that pays: exact, GTG-Shapley or plain permutation sampling.

Source: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053) as used by GreedyFed (Singhal et al. 2023, arXiv 2312.09108).
U(S) = -validation loss of the model averaged over S; U(nobody) belongs to the model that the round began with.
Deviations: the budget counts permutations; estimates are arithmetic means over all permutations so far; between rounds
|U(all) - U(nobody)| < `truncation_between` gives zeros (GreedyFed's code: 1e-9).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedexp.core.part import Part, Range
from fedexp.maths.shapley.convergence import TESTS
from fedexp.maths.shapley.exact import exact
from fedexp.maths.shapley.permutations import guided, shuffled, walk
from fedexp.maths.shapley.utilities import Utilities, all_coalitions

EXACT_AT_MOST = 20  # players whose 2^M coalitions can be asked for


@dataclass(frozen=True)
class Estimate:
    """Values `[M]`, how they were found, how many coalitions that took, and their largest error where it is known."""

    values: np.ndarray
    method: str
    coalitions: int
    converged: bool
    error: float | None


@dataclass(frozen=True, kw_only=True)
class Shapley(Part):
    """How Shapley values are found; `auto` is exact where 2^M coalitions are no more than the permutations allowed."""

    method: Literal["auto", "exact", "gtg", "permutations"] = "auto"
    permutations_per_client: Annotated[int, Range(1)] = 50
    truncation: Annotated[float, Range(0)] = 1e-4
    truncation_between: Annotated[float, Range(0)] = 1e-4
    convergence: Literal["per_client", "flexcs", "gtg_authors"] = "per_client"
    compare: bool = False

    def estimate(
        self, players: int, evaluate: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
    ) -> Estimate:
        """Values of M players; `evaluate` gives the utilities `[R]` of coalitions `[R, M]`.

        Raises:
            ValueError: exact values of more than 20 players were asked for.
        """
        utilities, method = Utilities(players, evaluate), self._method(players)
        if players == 0:
            return Estimate(np.zeros(0), method, 0, True, None)
        if method == "exact":
            return Estimate(self._exact(utilities), method, utilities.evaluated, True, 0.0)
        values, converged = self._sampled(utilities, method, rng)
        coalitions = utilities.evaluated
        known = utilities.complete or (self.compare and players <= EXACT_AT_MOST)
        error = float(np.abs(values - self._exact(utilities)).max()) if known else None
        return Estimate(values, method, coalitions, converged, error)

    def _method(self, players: int) -> str:
        if self.method != "auto":
            return self.method
        affordable = players <= EXACT_AT_MOST and 2**players <= self.permutations_per_client * players
        return "exact" if affordable or players == 0 else "gtg"

    def _exact(self, utilities: Utilities) -> np.ndarray:
        if utilities.players > EXACT_AT_MOST:
            raise ValueError(
                f"exact Shapley values of {utilities.players} participants need 2^{utilities.players} models; use "
                "method=auto, or fewer participants"
            )
        return exact(utilities(all_coalitions(utilities.players)))

    def _sampled(self, utilities: Utilities, method: str, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
        players = utilities.players
        empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
        truncating = method == "gtg"
        if truncating and abs(full - empty) < self.truncation_between:
            return np.zeros(players), True
        draw, settled = (guided if truncating else shuffled), TESTS[self.convergence]
        marginal, means = np.zeros((0, players)), np.zeros((0, players))
        while len(marginal) < self.permutations_per_client * players:
            sweep = walk(draw(players, rng), utilities, self.truncation if truncating else 0.0)
            marginal = np.concatenate([marginal, sweep])
            means = marginal.cumsum(axis=0) / np.arange(1, len(marginal) + 1)[:, None]
            if settled(means):
                return means[-1], True
        return means[-1], False
