"""Regression estimators in stages: one sample is drawn, and evaluated in growing parts.

Legend: M players.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.kernel import kernel_pairs
from fedexp.maths.shapley.sampling.leverage import leverage_pairs
from fedexp.maths.shapley.sampling.pairs import first_share
from fedexp.maths.shapley.sampling.regression import fit

PAIR_SAMPLERS = {"kernel": kernel_pairs, "leverage": leverage_pairs}
STAGES = (0.25, 0.5, 1.0)  # shares of the sampled pairs
SMALL = 0.01  # largest error in units of the spread that counts as converged (Covert & Lee 2021, section 4.2)


@dataclass(frozen=True)
class FitResult:
    """Values and standard errors `[M]` after a `share` of the budget."""

    values: np.ndarray
    errors: np.ndarray | None
    share: float

    def has_converged(self, _test: str) -> bool:
        """Covert & Lee's test: the largest standard error is at most 1 % of the spread of the values."""
        return self.errors is not None and self.errors.max() <= SMALL * np.ptp(self.values)


def fit_in_stages(
    utilities: Utilities, method: str, coalitions: int, stages: tuple[float, ...], rng: np.random.Generator
) -> Iterator[FitResult]:
    """Yields fits to growing parts of one sample of at most `coalitions` coalitions."""
    strata = PAIR_SAMPLERS[method](utilities.players, (coalitions - 2) // 2, rng)
    if all(stratum.complete for stratum in strata):
        stages = stages[-1:]
    for share in stages:
        values, errors = fit(first_share(strata, share) if share < 1 else strata, utilities)
        yield FitResult(values, errors, share)
