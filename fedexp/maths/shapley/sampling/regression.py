"""Shapley values as a weighted least-squares fit to pairs of coalitions, with standard errors.

Source: Charnes et al. 1988 and Lundberg & Lee 2017 (KernelSHAP): the values are the additive game, with
sum = U(all) - U(nobody), that fits all coalitions best under the Shapley kernel's weights. With the constraint put in
(Musco & Witter 2024, arXiv 2410.01917, lemma 3.1), z' = z - |z| / M and
d = (U(z) - U(1 - z) - (2|z| - M) / M (U(all) - U(nobody))) / 2 for a pair:
values = (U(all) - U(nobody)) / M + G^+ sum w z' d, with G = sum w z' z'^T.
A complement has -z' and -d, so a pair is one row. The fit to a sample is Covert & Lee's (2021, arXiv 2012.01536)
original, not their unbiased estimator: its bias falls faster than its error and its variance is far lower.

Standard errors: the sandwich formula. Pair i moves the values by w G^+ z' e / (1 - h), with e its residual and h its
leverage in the fit (the jackknife, HC3). Within a stratum pairs are a simple random sample, so a stratum adds
W^2 (1 - n / N) s^2 / n (Cochran 1977); a complete one adds nothing. The errors are widened for few pairs as in
`standard_error`. They do not cover the bias of the fit, nor fewer pairs than players.
Legend: M players, n pairs of a stratum, N pairs that it stands for, W their kernel weight.
"""

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.pairs import Stratum
from fedexp.maths.shapley.sampling.standard_error import combine_errors

SINGULAR = 1e-9  # eigenvalues below this share of the largest count as 0: the constraint removes one direction
NEARLY = 1e-6  # least 1 - leverage: a pair that alone fixes a value has a large influence, not an infinite one


def fit(strata: list[Stratum], utilities: Utilities) -> tuple[np.ndarray, np.ndarray | None]:
    """Values `[M]` and their standard errors `[M]`; None instead of errors if there are too few pairs."""
    players = utilities.players
    members, weight, design, inverse = _least_squares(strata, players)
    ends = np.array([np.zeros(players), np.ones(players)], dtype=bool)
    empty, full, *pair_utilities = utilities(np.concatenate([ends, members, ~members]))
    inside, outside = np.array(pair_utilities).reshape(2, -1)
    share = members.mean(axis=1)
    difference = (inside - outside - (2 * share - 1) * (full - empty)) / 2
    slope = inverse @ (design.T @ (weight * difference))
    residual = difference - design @ slope
    leverage = weight * ((design @ inverse) * design).sum(axis=1)
    influence = (design @ inverse) * (residual / np.maximum(1 - leverage, NEARLY))[:, None]
    return (full - empty) / players + slope, _errors(strata, influence)


def pair_weights(strata: list[Stratum], players: int) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each coalition's utility in the fitted values: coalitions `[2 n, M]` and weights `[2 n, M]`.

    Nobody and all are left out.
    """
    members, weight, design, inverse = _least_squares(strata, players)
    half = (design @ inverse) * weight[:, None] / 2
    return np.concatenate([members, ~members]), np.concatenate([half, -half])


def _least_squares(strata: list[Stratum], players: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The pairs, their weights `[n]`, their rows z' of the design, and G^+."""
    members = np.concatenate([np.zeros((0, players), dtype=bool), *(stratum.members for stratum in strata)])
    share = members.mean(axis=1)
    design = members - share[:, None]
    weight = np.concatenate(
        [np.full(len(stratum.members), stratum.weight / len(stratum.members)) for stratum in strata] or [share]
    )
    inverse = np.linalg.pinv((design * weight[:, None]).T @ design, rcond=SINGULAR, hermitian=True)
    return members, weight, design, inverse


def _errors(strata: list[Stratum], influence: np.ndarray) -> np.ndarray | None:
    """Standard errors; `influence [n, M]` is how much each pair alone would move the values."""
    players = influence.shape[1]
    sampled = [stratum for stratum in strata if not stratum.complete]
    if not sampled:
        return np.zeros(players)
    if len(influence) <= players or min(len(stratum.members) for stratum in sampled) < 2:
        return None
    ends = np.cumsum([len(stratum.members) for stratum in strata])[:-1]
    parts = [part for stratum, part in zip(strata, np.split(influence, ends), strict=True) if not stratum.complete]
    variance = [
        stratum.weight**2 * (1 - len(part) / stratum.population) * part.var(axis=0, ddof=1) / len(part)
        for stratum, part in zip(sampled, parts, strict=True)
    ]
    freedom = np.array([[len(part) - 1.0] for part in parts])
    return combine_errors(np.array(variance), freedom)
