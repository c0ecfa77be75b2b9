"""Shapley values of a round by the method that pays: exact, a smooth surrogate, or one of six ways of sampling.

Source: GTG-Shapley (Liu et al. 2022, arXiv 2109.02053) as used by GreedyFed (Singhal et al. 2023, arXiv 2312.09108);
the other ways name theirs in their own files: `surrogate`, `permutations`, `kernel`, `leverage`.
U(S) = -validation loss of the model averaged over S; U(nobody) belongs to the model that the round began with.

Utilities are means over the validation examples, or over `examples` of them if they are more, drawn once a run. The
surrogate evaluates 3 M coalitions on all of these and the others on a `part` (`fidelities`). Its budget is
`coalitions`, 12 M if that is not given, in a few batches; the next is not asked for where the largest standard error is
at most 1 % of the spread of the values (`stop=values`), or the ranking is settled. The budget of the others is
`permutations_per_client` times M permutations, for `kernel` and `leverage` the distinct coalitions that so many
permutations are expected to ask for; `coalitions` bounds it, 2,048 if it is not given, and without bound for `exact`,
`gtg` and `permutations`, which are done as published. GTG-Shapley's first sweep is made whatever it is.
`auto` is exact to 6 players, then the surrogate (`affordable`). `exact_or_gtg` is what `auto` was before there was a
surrogate: exact where 2^M is at most the number of permutations allowed, else GTG-Shapley. Older runs go on with it.

Deviations: the budget counts permutations; estimates are arithmetic means over all permutations so far; between rounds
|U(all) - U(nobody)| < `truncation_between` gives zeros (GreedyFed's code: 1e-9), in `gtg` alone. Estimates that are
not published ones become the exact values when every coalition has been asked for.
Legend: M players, R coalitions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedexp.core.part import Part, Range
from fedexp.maths.shapley.affordable import (
    AT_MOST,
    EXACT_AT_MOST,
    affordable_method,
    coalition_budget,
    surrogate_budget,
)
from fedexp.maths.shapley.exact import exact
from fedexp.maths.shapley.fidelities import Fidelities, fidelities
from fedexp.maths.shapley.fits import DRAWS, STAGES, Fitted, fits
from fedexp.maths.shapley.settled import is_settled
from fedexp.maths.shapley.surrogate import BATCHES, surrogate_fits
from fedexp.maths.shapley.sweeps import WAYS, Sampled, sweeps
from fedexp.maths.shapley.utilities import Utilities, all_coalitions

PUBLISHED = ("exact", "gtg", "permutations")  # done as published: no bound unless one is given
LOOKS = (0.125, 0.25, 0.5, 1.0)  # shares of the budget after which it is asked whether the ranking is settled

Sure = Callable[[np.ndarray, np.ndarray], float | None]


@dataclass(frozen=True)
class Estimate:
    """Values `[M]`, how they were found, how many coalitions that took, and their largest error where it is known.

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


@dataclass(frozen=True, kw_only=True)
class Shapley(Part):
    """How Shapley values are found, at what cost, and when they are good enough."""

    method: Literal[
        "auto",
        "exact",
        "surrogate",
        "exact_or_gtg",
        "gtg",
        "permutations",
        "antithetic",
        "stratified",
        "kernel",
        "leverage",
    ] = "auto"
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
        sure: Sure | None = None,
        share: np.ndarray | None = None,
        examples: int = 0,
    ) -> Estimate:
        """Values of M players; `evaluate` gives the utilities `[R]` of coalitions `[R, M]`.

        `sure` says of values and standard errors `[M]` how sure the ranking is that they lead to; `share [M]` is what
        each counts in the mean of a coalition, equally much unless it is given. With `examples` utilities are means
        over so many and `evaluate` is also told on which of them, a `range`.

        Raises:
            ValueError: exact values of more than 20 players were asked for.
        """
        method = self.chosen(players)
        sight = fidelities(players, evaluate, examples, self._looked_at(players, method))
        utilities = sight.whole
        if players == 0:
            return Estimate(np.zeros(0), method, 0, True, None, np.zeros(0))
        if method == "exact":
            return Estimate(self._exact(utilities), method, utilities.evaluated, True, 0.0, np.zeros(players))
        values, errors, converged = self._sampled(utilities, self._estimates(sight, method, share, rng), method, sure)
        coalitions, complete = sight.evaluated, utilities.complete
        true = self._exact(utilities) if complete or (self.compare and players <= EXACT_AT_MOST) else None
        if true is not None and complete and method not in PUBLISHED:
            return Estimate(true, method, coalitions, True, 0.0, np.zeros(players))
        error = None if true is None else float(np.abs(values - true).max())
        return Estimate(values, method, coalitions, converged, error, errors)

    def chosen(self, players: int) -> str:
        """The method for so many players."""
        if self.method == "exact_or_gtg":
            few = players <= EXACT_AT_MOST and 2**players <= self.permutations_per_client * players
            return "exact" if few or players == 0 else "gtg"
        return affordable_method(players, self.coalitions) if self.method == "auto" else self.method

    def _looked_at(self, players: int, method: str) -> float:
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

    def _sampled(
        self, utilities: Utilities, estimates: Iterator[Sampled | Fitted], method: str, sure: Sure | None
    ) -> tuple[np.ndarray, np.ndarray | None, bool]:
        players = utilities.players
        empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
        if method == "gtg" and abs(full - empty) < self.truncation_between:
            return np.zeros(players), np.zeros(players), True
        reached, due = None, 0
        for reached in estimates:
            if self.stop == "values" and reached.converged(self.convergence):
                return reached.values, reached.errors, True
            if self.stop == "ranking" and reached.share >= LOOKS[due]:
                due = min(due + sum(reached.share >= look for look in LOOKS[due:]), len(LOOKS) - 1)
                if self._ranked(reached, sure):
                    return reached.values, reached.errors, True
        assert reached is not None  # a first sweep, or a fit, is always made
        return reached.values, reached.errors, self.stop == "budget" and reached.converged(self.convergence)

    def _ranked(self, reached: Sampled | Fitted, sure: Sure | None) -> bool:
        errors = reached.errors
        return (
            sure is not None
            and errors is not None
            and is_settled(sure(reached.values, errors), self.confidence, len(LOOKS))
        )

    def _estimates(
        self, sight: Fidelities, method: str, share: np.ndarray | None, rng: np.random.Generator
    ) -> Iterator[Sampled | Fitted]:
        utilities, players = sight.whole, sight.whole.players
        permutations = self.permutations_per_client * players
        if method == "surrogate":
            counts = np.ones(players) if share is None else share
            return surrogate_fits(sight, counts, surrogate_budget(players, self.coalitions), BATCHES[self.stop], rng)
        if method in DRAWS:
            stages = {"values": STAGES, "ranking": LOOKS, "budget": (1.0,)}[self.stop]
            budget = coalition_budget(players, permutations, self.coalitions or AT_MOST)
            return iter(fits(utilities, method, budget, stages, rng))
        at_most = self.coalitions if method in PUBLISHED else self.coalitions or AT_MOST
        return iter(sweeps(utilities, WAYS[method], permutations, at_most, self.truncation, rng))
