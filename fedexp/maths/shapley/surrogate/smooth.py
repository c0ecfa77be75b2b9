"""The utility of a round as a smooth function of the mixture weights: a Gaussian process fitted to some coalitions.

The model of coalition S is the mean of its members' models with weights w_k(S) = share_k [k in S] / share(S), so its
loss is a function of w(S), and a smooth one where the loss is smooth. The prior (Rasmussen & Williams 2006, chapter 2):

    U(S) = h(S)' b + f(w(S)) + e(S),   cov f = a exp(-|w - w'|^2 / (2 l^2)),   e independent with variance a nu

with b flat. h(S) = w(S), or h(S) = [w(S), 1(S)] with the indicators of the members, which fits additive games exactly;
a constant is in both, as weights sum to 1. e is the part of the utility that is not smooth, not a measurement error:
evaluated utilities are known exactly. Nobody is another model and never in the fit.

l and nu maximise the restricted marginal likelihood over `LENGTHS` x `NUGGETS`. The larger leave-one-out predictive
density chooses between the two means (section 5.4.2), as likelihoods of different flat means cannot be compared. The
grid has short lengths and large nuggets: a game that is not smooth becomes a regression with independent residuals, and
its large amplitude gives large errors. Both choices use no more than `CHOICE` coalitions, or 3 M.
a is the largest of three estimates: the restricted likelihood's y'Qy / (n - p); the mean squared leave-one-out residual
in units of its own standard deviation, (Qy)_i^2 / Q_ii, with Q = K^-1 - K^-1 H (H'K^-1 H)^-1 H'K^-1; and the same
mean with each size s weighted by what its unknown coalitions count in the values,
(C(M, s) - n_s) (s / C(M - 1, s - 1)^2 + (M - s) / C(M - 1, s)^2): a game may be smooth in the small coalitions, most of
which are known, and rough in the others. Errors are widened by Student's t with n - p degrees of freedom.
Ours and new, as far as we know: these features for Shapley values of averaged models, and the third estimate.
Legend: M players, n coalitions of the fit, R other coalitions, p columns of the mean, F linear functionals.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fedexp.maths.shapley.sampling.standard_error import widening

LENGTHS = (0.125, 0.25, 0.5, 1.0, 1.5, 2.5)  # weights of two players alone are 1.4 apart
NUGGETS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 10.0)
CHOICE = 300  # coalitions that length and nugget are chosen on
DEPENDENT = 1e-9  # singular values below this share of the largest count as 0, as for equal clients or equal shares
BLOCK = 4096  # coalitions that are predicted at a time
NOTHING = 1e-20  # a variance below this share of that of the utilities is rounding


def mixture_weights(members: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The weights `[R, M]` of the players with `share [M]` in the means of coalitions `members [R, M]`.

    They are all 0 if no member has a share.
    """
    weight = members * share
    total = weight.sum(axis=1, keepdims=True)
    return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)


def kernel(first: np.ndarray, second: np.ndarray, length: float) -> np.ndarray:
    """exp(-|w - w'|^2 / (2 l^2)) of mixture weights `first [R, M]` and `second [n, M]`, `[R, n]`."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return np.exp(-np.maximum(squares, 0) / (2 * length**2))


def unknown_weight(members: np.ndarray) -> np.ndarray:
    """How much the unevaluated coalitions of each size count in the values, `[n]`, for `members [n, M]`."""
    players, size = members.shape[1], members.sum(axis=1).astype(np.int64)
    sizes, inverse, counts = np.unique(size, return_inverse=True, return_counts=True)
    weights = [
        s / math.comb(players - 1, s - 1) ** 2 + (players - s) / max(math.comb(players - 1, s), 1) ** 2
        for s in sizes.tolist()
    ]
    missing = [math.comb(players, s) / count - 1 for s, count in zip(sizes.tolist(), counts.tolist(), strict=True)]
    return (np.array(weights) * np.array(missing, dtype=float))[inverse]


@dataclass(frozen=True)
class Surface:
    """The process given the `utility [n]` of coalitions with `members [n, M]` and mixture `weight [n, M]`."""

    weight: np.ndarray
    members: np.ndarray
    utility: np.ndarray
    additive: bool
    length: float
    nugget: float

    @cached_property
    def basis(self) -> np.ndarray:
        """The transformation to orthonormal columns of the mean, `[M, p]`; `[2 M, p]` if the mean is `additive`."""
        _, size, right = np.linalg.svd(_columns(self.weight, self.members, self.additive), full_matrices=False)
        independent = size > DEPENDENT * size[0]
        return right[independent].T / size[independent]

    @cached_property
    def design(self) -> np.ndarray:
        """Columns of the mean, `[n, p]`."""
        return _columns(self.weight, self.members, self.additive) @ self.basis

    @cached_property
    def inverse(self) -> np.ndarray:
        """K^-1, `[n, n]`."""
        covariance = kernel(self.weight, self.weight, self.length) + self.nugget * np.eye(len(self.weight))
        return cho_solve(cho_factor(covariance, lower=True), np.eye(len(covariance)))

    @cached_property
    def gram(self) -> np.ndarray:
        """(H'K^-1 H)^-1, `[p, p]`."""
        return np.linalg.inv(self.design.T @ self.inverse @ self.design)

    @cached_property
    def slope(self) -> np.ndarray:
        """Coefficients of the mean, `[p]`."""
        return self.gram @ (self.design.T @ (self.inverse @ self.utility))

    @cached_property
    def pull(self) -> np.ndarray:
        """K^-1 (y - H b) = Qy, `[n]`."""
        return self.inverse @ (self.utility - self.design @ self.slope)

    @property
    def freedom(self) -> int:
        """Coalitions beyond the columns of the mean."""
        return len(self.utility) - self.design.shape[1]

    @cached_property
    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Leave-one-out residuals, their variances in units of the amplitude, and a mask `[n]` of the coalitions.

        Coalitions that the others do not determine are left out; the mask is False for them.
        """
        whitened = self.inverse @ self.design
        precision = np.diag(self.inverse) - ((whitened @ self.gram) * whitened).sum(axis=1)
        determined = precision > DEPENDENT * precision.max()
        return self.pull[determined] / precision[determined], 1 / precision[determined], determined

    @cached_property
    def amplitude(self) -> float:
        """The variance a: the largest of the three estimates."""
        residual, variance, determined = self.leave_one_out
        if not determined.any():
            return 0.0
        likely = float(self.utility @ self.pull) / max(self.freedom, 1)
        square, weight = residual**2 / variance, unknown_weight(self.members)[determined]
        sized = weight @ square / weight.sum() if weight.any() else 0.0
        return max(likely, float(square.mean()), float(sized), 0.0)

    @property
    def score(self) -> float:
        """Mean leave-one-out log predictive density, without constants."""
        residual, variance, _ = self.leave_one_out
        scale = (residual**2 / variance).mean() + NOTHING * self.utility.var() + np.finfo(float).tiny
        return float(-np.log(scale * variance).mean())

    def predict(self, weight: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Mean of the utilities of other coalitions, `[R]`, with `weight [R, M]` and `members [R, M]`."""
        trend = _columns(weight, members, self.additive) @ (self.basis @ self.slope)
        blocks = np.split(weight, range(BLOCK, len(weight), BLOCK))
        return trend + np.concatenate([kernel(block, self.weight, self.length) @ self.pull for block in blocks])

    def variance(self, weight: np.ndarray, members: np.ndarray, functional: np.ndarray) -> np.ndarray:
        """Variances `[F]` of sums of the utilities of other coalitions, weighted by `functional [R, F]` and widened.

        The coalitions have mixture `weight [R, M]` and `members [R, M]`.
        """
        near = kernel(weight, self.weight, self.length).T @ functional
        columns = (_columns(weight, members, self.additive) @ self.basis).T @ functional
        missed = columns - self.design.T @ (self.inverse @ near)
        smooth = (functional * (kernel(weight, weight, self.length) @ functional)).sum(axis=0)
        explained = (near * (self.inverse @ near)).sum(axis=0)
        unexplained = self.nugget * (functional**2).sum(axis=0) + (missed * (self.gram @ missed)).sum(axis=0)
        wide = widening(np.array([float(self.freedom)]))
        return self.amplitude * np.maximum(smooth - explained + unexplained, 0) * wide**2


def fit_surface(weight: np.ndarray, members: np.ndarray, utility: np.ndarray) -> Surface:
    """Fits the process: length and nugget by likelihood, the mean by its leave-one-out score.

    `weight [n, M]` and `members [n, M]` are the coalitions, `utility [n]` their utilities.
    """
    most = max(CHOICE, 3 * weight.shape[1])
    subset = np.unique(np.linspace(0, len(utility) - 1, min(most, len(utility))).round().astype(np.int64))
    candidates = list(_likeliest(weight[subset], members[subset], utility[subset]))
    best = max(candidates, key=lambda surface: surface.score)
    return Surface(weight, members, utility, best.additive, best.length, best.nugget)


def _likeliest(weight: np.ndarray, members: np.ndarray, utility: np.ndarray) -> Iterator[Surface]:
    """The most likely surface for each mean; for the larger mean only with clearly more coalitions than its columns."""
    spectra = {length: np.linalg.eigh(kernel(weight, weight, length)) for length in LENGTHS}
    for additive in (False, True):
        start = Surface(weight, members, utility, additive, 1.0, 1.0)
        if additive and 4 * start.freedom < len(utility):
            continue
        likelihoods = {
            (length, nugget): _likelihood(*spectra[length], nugget, start.design, utility)
            for length in LENGTHS
            for nugget in NUGGETS
        }
        length, nugget = max(likelihoods, key=lambda setting: likelihoods[setting])
        yield Surface(weight, members, utility, additive, length, nugget)


def _likelihood(value: np.ndarray, vector: np.ndarray, nugget: float, design: np.ndarray, utility: np.ndarray) -> float:
    """Twice the restricted log likelihood at the amplitude that suits it best, without constants."""
    scale = np.maximum(value, 0) + nugget
    white = (vector.T @ design) / np.sqrt(scale)[:, None]
    white_utility = (vector.T @ utility) / np.sqrt(scale)
    orthogonal, triangle = np.linalg.qr(white)
    residual = white_utility - orthogonal @ (orthogonal.T @ white_utility)
    freedom = max(len(utility) - design.shape[1], 1)
    amplitude = residual @ residual / freedom + NOTHING * utility.var() + np.finfo(float).tiny
    return float(-freedom * np.log(amplitude) - np.log(scale).sum() - 2 * np.log(np.abs(np.diag(triangle))).sum())


def _columns(weight: np.ndarray, members: np.ndarray, additive: bool) -> np.ndarray:
    return np.concatenate([weight, members], axis=1) if additive else weight
