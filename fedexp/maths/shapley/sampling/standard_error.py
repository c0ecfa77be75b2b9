"""Standard errors of means of marginal contributions, from independent repeats.

The independent repeats are called units; here they are permutations. They come from S strata that are sampled equally
often (in a guided sweep stratum k is the permutations with k first); the variance of the mean is the sum over strata of
s^2 / (U S^2), with U units a stratum (Cochran 1977, chapter 5).
With few units, a player whose contributions are rare may have none in any unit, and an error of 0. So each player's
variance is moved towards the mean variance of all players of its stratum, which counts as `PRIOR` more observations
(moderated variances: Smyth 2004, who estimates that number; here it was set so that the intervals of the four families
of games in the tests cover as they should). Where all marginals are equal the error stays 0.
The error is widened by the ratio of Student's and the normal 97.5 % quantile, with the degrees of freedom of Welch and
Satterthwaite, so that plus and minus 1.96 errors is the 95 % interval for few units, too.

Not covered are the bias of truncation (compare with `truncation=0`, or record the true error with `compare=true`) and
that of stopping by the `convergence` tests.
Legend: U units a stratum, S strata, M players.
"""

import numpy as np
from scipy.special import stdtrit

FEWEST = 4  # units of all strata together; fewer give no estimate
PRIOR = 8  # observations that the mean variance of all players counts for
NORMAL = 1.959963984540054  # 97.5 % quantile


def widening(freedom: np.ndarray) -> np.ndarray:
    """Ratios of Student's to the normal 97.5 % quantile, one for each degree of freedom (any shape)."""
    return stdtrit(np.maximum(freedom, 1.0), 0.975) / NORMAL


def combine_errors(variance: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Standard error `[M]` of a sum of independent terms with variances `[S, M]`, each known to `freedom [S, 1]`."""
    total = variance.sum(axis=0)
    squares = (variance**2 / freedom).sum(axis=0)
    total_freedom = np.divide(total**2, squares, out=np.full_like(total, np.inf), where=squares > 0)
    return np.sqrt(total) * widening(np.minimum(total_freedom, 1e9))


def moderate_variances(variance: np.ndarray, freedom: int) -> np.ndarray:
    """Variances `[S, M]`, moved towards the mean over players, which counts as `PRIOR` more observations."""
    mean = variance.mean(axis=1, keepdims=True)
    return (freedom * variance + PRIOR * mean) / (freedom + PRIOR)


def standard_errors(units: np.ndarray) -> np.ndarray | None:
    """Standard error `[M]` of the mean over units and strata of `units [U, S, M]`; None if there are very few."""
    repeats, strata, players = units.shape
    if repeats < 2 or repeats * strata < FEWEST:
        return None
    variance = moderate_variances(units.var(axis=0, ddof=1), repeats - 1) / (repeats * strata**2)
    borrowed = min(PRIOR, (repeats - 1) * (players - 1))
    return combine_errors(variance, np.full((strata, 1), repeats - 1.0 + borrowed))
