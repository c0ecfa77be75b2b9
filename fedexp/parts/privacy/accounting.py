"""Epsilon of a federation: of many clients, each with its own sampling rate and number of steps.

Epsilon grows with the rate and with the steps. So the largest epsilon is on the Pareto frontier of rate and steps, and
an epsilon at (largest rate, most steps) bounds a whole stretch of the frontier. Clients hold disjoint examples, so the
federation's epsilon is the largest one, not a sum. Legend: n clients.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Literal

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.parts.privacy.sampled_gaussian import LEAST_NOISE, pld_epsilon, rdp_epsilon

Accountant = Literal["rdp", "pld"]

ACCOUNTANTS: dict[Accountant, Callable[..., float]] = {"rdp": rdp_epsilon, "pld": pld_epsilon}
MOST_NOISE = 8192.0  # 2^13
SLACK = 0.005  # the loss is discretised differently for each rate, so a bound may be too low by this share
WIDTH = 1.0005  # the noise multiplier found is at most this factor above the least


def epsilons(
    rate: np.ndarray, noise_multiplier: float | np.ndarray, steps: np.ndarray, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Epsilon of each client by Renyi divergences and by the privacy loss distribution, both `[n]`.

    Args:
        rate: probability of each example to be in a step's batch, in [0, 1], `[n]`; 1 is the plain Gaussian mechanism.
        noise_multiplier: standard deviation of the noise over the norm at which contributions are clipped, also `[n]`.
        steps: how many batches there were, `[n]`; 0 steps give 0.
        delta: in (0, 1).

    Example:
        >>> rdp, pld = epsilons(np.array([0.01, 1.0, 0.5]), 1.0, np.array([1000, 1, 0]), 1e-5)
        >>> print(rdp.round(3), pld.round(3))
        [2.101 4.729 0.   ] [1.83  4.377 0.   ]
    """
    cases = [(float(q), float(sigma), int(count)) for q, sigma, count in np.broadcast(rate, noise_multiplier, steps)]
    if any(not 0 <= q <= 1 or count < 0 for q, _, count in cases):
        raise ValueError("sampling rates lie between 0 and 1, and numbers of steps are not negative")
    rdp = np.array([rdp_epsilon(*case, delta) for case in cases])
    return rdp, np.array([pld_epsilon(*case, delta) for case in cases])


def frontier(rate: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs (rate, steps) of `[n]` that can have the largest epsilon, `[m]`, each once: rates fall, steps rise.

    Example:
        >>> frontier(np.array([0.1, 0.2, 0.1, 0.05, 0.2]), np.array([9, 5, 7, 8, 5]))
        (array([0.2, 0.1]), array([5, 9]))
    """
    rate, steps = np.asarray(rate, dtype=float), np.asarray(steps)
    order = np.lexsort((-steps, -rate))
    order = order[(rate[order] > 0) & (steps[order] > 0)]
    best_before = np.maximum.accumulate(np.concatenate([[0], steps[order]]))[:-1]
    order = order[steps[order] > best_before]
    return rate[order], steps[order]


def largest_epsilon(
    rate: np.ndarray, noise_multiplier: float, steps: np.ndarray, delta: float, accountant: Accountant
) -> float:
    """The largest epsilon of clients with `rate [n]` and `steps [n]`, computed for a few; 0 if nobody trains."""
    rate, steps = frontier(rate, steps)
    if not len(rate):
        return 0.0
    epsilon = partial(ACCOUNTANTS[accountant], noise_multiplier=noise_multiplier, delta=delta)
    return _worst_epsilon(rate, steps, epsilon)[0]


def _worst_epsilon(rate: np.ndarray, steps: np.ndarray, epsilon: Callable[..., float]) -> tuple[float, int]:
    """The largest epsilon on a frontier and its position, by bisection of stretches, the highest bound first."""
    stretches: list[tuple[float, int, int]] = []

    def push(first: int, last: int) -> None:
        heappush(stretches, (-epsilon(float(rate[first]), steps=int(steps[last])), first, last))

    push(0, len(rate) - 1)
    best = (-1.0, 0)
    while stretches and -stretches[0][0] * (1 + SLACK) > best[0]:
        negative, first, last = heappop(stretches)
        if first == last:
            best = max(best, (-negative, first))
        else:
            middle = (first + last) // 2
            push(first, middle)
            push(middle + 1, last)
    return best


def noise_multiplier_for(
    epsilon: float, delta: float, rate: np.ndarray, steps: np.ndarray, accountant: Accountant
) -> float:
    """The least noise multiplier with which no client of `rate [n]` and `steps [n]` exceeds `epsilon`; 0 without steps.

    It may be 0.1 % too large. The noise for one client is found and tried on all; as long as another one exceeds, the
    noise for that one is found.

    Raises:
        ConfigError: no noise is enough.
    """
    rate, steps = frontier(rate, steps)
    if not len(rate):
        return 0.0
    account = ACCOUNTANTS[accountant]
    position, sigma = int(np.argmax(rate * np.sqrt(steps))), LEAST_NOISE  # a guess, right for small rates
    while True:
        case = partial(account, float(rate[position]), steps=int(steps[position]), delta=delta)
        multiplier = _least_noise(case, epsilon, sigma)
        if multiplier is None:
            raise ConfigError(_unreachable_message(epsilon, delta, accountant))
        sigma = multiplier
        worst, position = _worst_epsilon(rate, steps, partial(account, noise_multiplier=sigma, delta=delta))
        if worst <= epsilon:
            return sigma


def _least_noise(epsilon_of: Callable[[float], float], target: float, low: float) -> float | None:
    """Bisects the logarithm between `low` and MOST_NOISE; None if even MOST_NOISE exceeds the target."""
    if epsilon_of(low) <= target:
        return low
    high = max(1.0, 2 * low)
    while epsilon_of(high) > target:
        low, high = high, 2 * high
        if high > MOST_NOISE:
            return None
    while high / low > WIDTH:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if epsilon_of(middle) > target else (low, middle)
    rounded = float(f"{high * (1 + 5e-5):.5g}")
    return rounded if epsilon_of(rounded) <= target else high


def _unreachable_message(epsilon: float, delta: float, accountant: Accountant) -> str:
    advice = "raise it, or use privacy.accountant=pld" if accountant == "rdp" else "raise it"
    return (
        f"privacy.epsilon must be within reach of a noise multiplier of at most {MOST_NOISE:g}, but at "
        f"delta={delta:g} the accountant {accountant} still finds more than {epsilon:g}; {advice}"
    )
