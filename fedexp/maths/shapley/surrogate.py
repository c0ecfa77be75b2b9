"""Shapley values of a smooth surrogate: few coalitions are evaluated, a Gaussian process tells the others.

Where M is at most `ALL_AT_MOST`, every coalition that was not evaluated is predicted and the exact formula is applied,
SV_k = sum over S of c_k(S) U(S). For more players the formula becomes the regression on `PREDICTED` predicted
coalitions that the Shapley kernel draws (`kernel`, `regression`): singles and their complements complete, the others in
pairs; it is linear in the utilities, too, so c_k(S) are its weights. Values add up to U(all) - U(nobody) either way.

Standard errors are the square roots of the posterior variance of sum over S of c_k(S) U(S), coalitions not evaluated
(`smooth.Surface.variance`), plus, for more players, the regression's own variance by sampling. Measured coverage of
their 95 % intervals: see tests/maths/shapley/test_surrogate.py and the benchmarks page.
Ours and new, as far as we know: surrogates for data values exist (for example Covert & Lee's regressions), none over the
mixture weights of averaged models.
Legend: M players, R coalitions.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from fedexp.maths.shapley.design import coalition_sequence
from fedexp.maths.shapley.exact import exact, exact_weights
from fedexp.maths.shapley.fits import Fitted
from fedexp.maths.shapley.kernel import kernel_pairs
from fedexp.maths.shapley.regression import fit, pair_weights
from fedexp.maths.shapley.smooth import Surface, fitted, mixture_weights
from fedexp.maths.shapley.utilities import Utilities, all_coalitions

ALL_AT_MOST = 12  # players whose 2^M coalitions are predicted
PREDICTED = 4096  # coalitions that are predicted for more players
TOLERANCE = 0.02  # largest standard error in units of the spread that is small enough
STAGES = (2 / 3, 1.0)  # of the budget: batches


def surrogate_fits(
    utilities: Utilities, share: np.ndarray, budget: int, stages: tuple[float, ...], rng: np.random.Generator
) -> Iterator[Fitted]:
    """Values from growing parts of one sequence of at most `budget` coalitions, a batch each."""
    asked = coalition_sequence(utilities.players, budget, rng)
    least = min(2 * utilities.players + 2, len(asked))
    for stage in stages:
        members = asked[: max(round(stage * len(asked)), least)]
        utilities(members)
        values, errors = completed(utilities, members, share, rng)
        yield Fitted(values, errors, stage, TOLERANCE)


def completed(
    utilities: Utilities, asked: np.ndarray, share: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Values `[M]` and standard errors from the utilities of what was asked for and predictions of all else."""
    players = utilities.players
    weight = mixture_weights(asked, share)
    counts = weight.any(axis=1)
    surface = fitted(weight[counts], asked[counts].astype(float), utilities(asked[counts]))
    told = Utilities(players, partial(_predicted, surface, share, float(utilities(np.zeros((1, players), bool))[0])))
    told.known |= utilities.known
    if players <= ALL_AT_MOST:
        members = all_coalitions(players)
        values, errors = exact(told(members)), np.zeros(players)
        functional = exact_weights(players)
    else:
        strata = kernel_pairs(players, PREDICTED // 2, rng)
        values, errors = fit(strata, told)
        members, functional = pair_weights(strata, players)
    unknown = ~utilities.knows(members) & (mixture_weights(members, share) > 0).any(axis=1)
    rest = members[unknown]
    variance = surface.variance(mixture_weights(rest, share), rest.astype(float), functional[unknown])
    return values, None if errors is None else np.sqrt(variance + errors**2)


def _predicted(surface: Surface, share: np.ndarray, nobody: float, members: np.ndarray) -> np.ndarray:
    """Utilities of other coalitions; one whose members count nothing is nobody."""
    weight = mixture_weights(members, share)
    return np.where(weight.any(axis=1), surface.predict(weight, members.astype(float)), nobody)
