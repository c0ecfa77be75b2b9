"""A lower bound of epsilon from guesses (Steinke, Nasr, Jagielski 2023, arXiv 2305.08846).

Each of m examples is included with probability 1/2. An attacker who saw the output guesses for r of them whether they
were included, and is right v times. If the training is (epsilon, delta)-private, then with
q = e^epsilon / (1 + e^epsilon) and W ~ Binomial(r, q)

    P[at least v right] <= P[W >= v] + 2 m delta max_{1 <= i <= v} P[v - i <= W < v] / i.

An epsilon for which this bound is below 5 % is rejected, and with it every smaller one, which would imply it.
"""

import numpy as np


def p_value(examples: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """A bound of the probability of at least this many right guesses under (epsilon, delta)-differential privacy.

    Example:
        >>> p_value(10, 3, 3, 0.0, 0.0)
        0.125
    """
    from scipy.stats import binom  # here, because it takes a second to import

    accuracy = 1 / (1 + np.exp(-epsilon))
    beyond = float(binom.sf(right - 1, guesses, accuracy))
    if not delta or not right:
        return min(1.0, beyond)
    distance = np.arange(1, right + 1)
    near = np.cumsum(binom.pmf(right - distance, guesses, accuracy)) / distance
    return min(1.0, beyond + 2 * examples * delta * float(near.max()))


def lower_bound(examples: int, guesses: int, right: int, delta: float, confidence: float = 0.95) -> float:
    """The largest epsilon that is rejected at this confidence, to 1e-6 from below; 0 if none is.

    Example:
        >>> round(lower_bound(5, 5, 5, 0.0), 3)  # q^5 = 0.05
        0.198
    """
    rejected, accepted = 0.0, 1.0
    if p_value(examples, guesses, right, rejected, delta) > 1 - confidence:
        return 0.0
    while p_value(examples, guesses, right, accepted, delta) <= 1 - confidence:
        rejected, accepted = accepted, 2 * accepted
    while accepted - rejected > 1e-6:
        middle = (rejected + accepted) / 2
        if p_value(examples, guesses, right, middle, delta) <= 1 - confidence:
            rejected = middle
        else:
            accepted = middle
    return rejected


def guess_inclusion(score: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions `[count]` of the highest of `score [m]`, guessed included, and of the lowest, guessed not included.

    Example:
        >>> guess_inclusion(np.array([0.3, 2.0, -1.0, 0.5]), 1)
        (array([1]), array([2]))
    """
    order = np.argsort(-score, kind="stable")
    return order[:count], order[len(order) - count :]
