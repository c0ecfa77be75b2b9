"""Shapley values of a round: exact, by a smooth surrogate, or by GTG-Shapley.

Source: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053) as used by GreedyFed (Singhal et al. 2023, arXiv 2312.09108);
the sources of the surrogate are in `surrogate/estimator`. U(S) = -validation loss of the model averaged over S;
U(nobody) belongs to the model that the round began with.

Utilities are means over the validation examples, or over `examples` of them (drawn once a run) if there are more.
The surrogate evaluates 3 M coalitions on all of these and the others on a `part` of them (`subsampled_validation`). Its
budget is `coalitions`, or 12 M, in a few batches. It stops early when the largest standard error is at most 1 % of the
spread of the values (`stop=values`), or when the ranking is settled.
The budget of `gtg` is `permutations_per_client` times M permutations, and no more than `coalitions` if it is given; the
first sweep is always made.
`auto` is exact while all coalitions fit into the surrogate's budget (without `coalitions` up to 6 players), and the
surrogate beyond.

Deviations: the budget counts permutations; estimates are arithmetic means over all permutations so far; a round with
|U(all) - U(nobody)| < `truncation_between` gives zeros (GreedyFed's code: 1e-9), in `gtg` alone. The surrogate gives
the exact values once every coalition has been evaluated.
Legend: M players, R coalitions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedexp.core.part import Part, Range
from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.subsampled_validation import Fidelities, make_fidelities
from fedexp.maths.shapley.game.utilities import Utilities, all_coalitions
from fedexp.maths.shapley.ranking.budget import EXACT_AT_MOST, choose_method, surrogate_budget
from fedexp.maths.shapley.ranking.ranking_confidence import is_settled
from fedexp.maths.shapley.sampling.permutation_sampling import SampledValues, run_sweeps
from fedexp.maths.shapley.surrogate.estimator import BATCHES, FitResult, surrogate_fits

LOOKS = (0.125, 0.25, 0.5, 1.0)  # shares of the budget after which the ranking is tested

RankingConfidence = Callable[[np.ndarray, np.ndarray], float | None]


@dataclass(frozen=True)
class Estimate:
    """Values `[M]`, the method, the number of coalitions evaluated, and the largest error if it is known.

    `errors [M]` are standard errors: 1.96 of them make a 95 % interval; None where they are unknown. They are about
    sampling alone: not about truncation, nor about the noise of the validation data.
    """

    values: np.ndarray
    method: str
    coalitions: int
    converged: bool
    error: float | None
    errors: np.ndarray | None = None

    @property
    def relative_error(self) -> float | None:
        """The largest standard error in units of the spread of the values; None where it is unknown."""
        if self.errors is None:
            return None
        largest, spread = self.errors.max(initial=0.0), np.ptp(self.values) if len(self.values) else 0.0
        return float(largest / spread) if spread else (None if largest else 0.0)


class Shapley(Part):
    """How Shapley values are estimated, with which budget, and when to stop."""

    method: Literal["auto", "exact", "surrogate", "gtg"] = "auto"
    permutations_per_client: Annotated[int, Range(1)] = 50
    coalitions: Annotated[int, Range(4)] | None = None
    examples: Annotated[int, Range(1)] | None = 10_000
    part: Annotated[float, Range(0, 1)] = 0.25
    truncation: Annotated[float, Range(0)] = 1e-4
    truncation_between: Annotated[float, Range(0)] = 1e-4
    stop: Literal["values", "ranking", "budget"] = "values"
    convergence: Literal["per_client", "flexcs", "gtg_authors"] = "per_client"
    confidence: Annotated[float, Range(0.5, 1, high_open=True)] = 0.95
    compare: bool = False

    def estimate(
        self,
        players: int,
        evaluate: Callable[..., np.ndarray],
        rng: np.random.Generator,
        ranking_confidence: RankingConfidence | None = None,
        share: np.ndarray | None = None,
        examples: int = 0,
    ) -> Estimate:
        """Values of M players; `evaluate` gives the utilities `[R]` of coalitions `[R, M]`.

        `ranking_confidence` maps values `[M]` and standard errors `[M]` to the confidence in the ranking that they lead
        to. `share [M]` is each player's weight in the mean of a coalition, equal by default. If `examples` is given,
        utilities are means over that many, and `evaluate` also gets their places, a `range`.

        Raises:
            ValueError: exact values of more than 20 players were asked for.
        """
        method = self.method_for(players)
        levels = make_fidelities(players, evaluate, examples, self._part_share(players, method))
        utilities = levels.full
        if players == 0:
            return Estimate(np.zeros(0), method, 0, True, None, np.zeros(0))
        if method == "exact":
            return Estimate(self._exact(utilities), method, utilities.evaluated_count, True, 0.0, np.zeros(players))
        values, errors, converged = self._sample(
            utilities, self._estimates(levels, method, share, rng), method, ranking_confidence
        )
        coalitions, complete = levels.evaluated_count, utilities.complete
        true = self._exact(utilities) if complete or (self.compare and players <= EXACT_AT_MOST) else None
        if true is not None and complete and method == "surrogate":
            return Estimate(true, method, coalitions, True, 0.0, np.zeros(players))
        error = None if true is None else float(np.abs(values - true).max())
        return Estimate(values, method, coalitions, converged, error, errors)

    def method_for(self, players: int) -> str:
        """The method for so many players."""
        return choose_method(players, self.coalitions) if self.method == "auto" else self.method

    def _part_share(self, players: int, method: str) -> float:
        """The share of the examples that most coalitions are evaluated on."""
        every = players <= EXACT_AT_MOST and surrogate_budget(players, self.coalitions) >= 2**players
        return self.part if method == "surrogate" and not every else 1.0

    def _exact(self, utilities: Utilities) -> np.ndarray:
        if utilities.players > EXACT_AT_MOST:
            raise ValueError(
                f"exact Shapley values of {utilities.players} participants need 2^{utilities.players} models; use "
                "method=auto, or fewer participants"
            )
        return exact(utilities(all_coalitions(utilities.players)))

    def _sample(
        self,
        utilities: Utilities,
        estimates: Iterator[SampledValues | FitResult],
        method: str,
        ranking_confidence: RankingConfidence | None,
    ) -> tuple[np.ndarray, np.ndarray | None, bool]:
        players = utilities.players
        empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
        if method == "gtg" and abs(full - empty) < self.truncation_between:
            return np.zeros(players), np.zeros(players), True
        reached, next_look = None, 0
        for reached in estimates:
            if self.stop == "values" and reached.has_converged(self.convergence):
                return reached.values, reached.errors, True
            if self.stop == "ranking" and reached.share >= LOOKS[next_look]:
                next_look = min(next_look + sum(reached.share >= look for look in LOOKS[next_look:]), len(LOOKS) - 1)
                if self._is_ranking_settled(reached, ranking_confidence):
                    return reached.values, reached.errors, True
        assert reached is not None  # a first sweep, or a fit, is always made
        return reached.values, reached.errors, self.stop == "budget" and reached.has_converged(self.convergence)

    def _is_ranking_settled(
        self, reached: SampledValues | FitResult, ranking_confidence: RankingConfidence | None
    ) -> bool:
        errors = reached.errors
        return (
            ranking_confidence is not None
            and errors is not None
            and is_settled(ranking_confidence(reached.values, errors), self.confidence, len(LOOKS))
        )

    def _estimates(
        self, levels: Fidelities, method: str, share: np.ndarray | None, rng: np.random.Generator
    ) -> Iterator[SampledValues | FitResult]:
        players = levels.full.players
        if method == "gtg":
            permutations = self.permutations_per_client * players
            return run_sweeps(levels.full, permutations, self.coalitions, self.truncation, rng)
        counts = np.ones(players) if share is None else share
        return surrogate_fits(levels, counts, surrogate_budget(players, self.coalitions), BATCHES[self.stop], rng)
