"""The bound on epsilon: by hand, against the slow sums, and against mechanisms whose epsilon is known."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from fedexp.parts.audit.bound import guess_inclusion, lower_bound, p_value


def test_p_values_by_hand():
    assert p_value(10, 3, 3, 0.0, 0.0) == pytest.approx(1 / 8)
    assert p_value(10, 3, 2, 0.0, 0.0) == pytest.approx(1 / 2)
    assert p_value(10, 2, 2, math.log(3), 0.0) == pytest.approx(9 / 16)
    assert p_value(1, 1, 1, 0.0, 0.01) == pytest.approx(0.5 + 2 * 0.01 * 0.5)
    assert p_value(10, 3, 0, 5.0, 0.5) == 1


def test_equal_to_the_slow_sums():
    for guesses, right, epsilon, delta in ((9, 6, 0.4, 0.01), (20, 19, 1.5, 1e-3), (20, 3, 0.1, 1e-3)):
        q = math.exp(epsilon) / (1 + math.exp(epsilon))
        chance = [math.comb(guesses, w) * q**w * (1 - q) ** (guesses - w) for w in range(guesses + 1)]
        near = max(sum(chance[right - i : right]) / i for i in range(1, right + 1))
        slow = sum(chance[right:]) + 2 * 50 * delta * near
        assert p_value(50, guesses, right, epsilon, delta) == pytest.approx(min(1, slow))


@pytest.mark.parametrize("guesses", [5, 20, 200])
def test_perfect_guesses(guesses: int):
    q = 0.05 ** (1 / guesses)
    assert lower_bound(1000, guesses, guesses, 0.0) == pytest.approx(math.log(q / (1 - q)), abs=1e-5)


def test_no_better_than_a_coin_is_nothing():
    assert lower_bound(1000, 200, 100, 1e-5) == 0
    assert lower_bound(1000, 200, 0, 1e-5) == 0
    assert lower_bound(1000, 4, 4, 0.0) == 0  # 1 / 16 is no rejection at 95 %


def test_what_is_proven_grows_with_right_guesses_and_falls_with_delta():
    bounds = [lower_bound(300, 100, right, 1e-5) for right in range(50, 101, 10)]
    assert bounds == sorted(bounds)
    assert lower_bound(300, 100, 90, 1e-3) < lower_bound(300, 100, 90, 1e-5) < lower_bound(300, 100, 90, 0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("guesses", [10, 100, 400])
def test_randomized_response_is_overestimated_once_in_twenty_at_most(epsilon: float, guesses: int):
    """Exactly: the chance of every number of right guesses, where the bound it leads to lies above the truth."""
    q = 1 / (1 + math.exp(-epsilon))
    too_high = [lower_bound(guesses, guesses, right, 0.0) > epsilon for right in range(guesses + 1)]
    assert binom.pmf(np.flatnonzero(too_high), guesses, q).sum() <= 0.05


def test_of_many_guesses_little_is_lost():
    assert 0.95 < lower_bound(20_000, 20_000, round(20_000 / (1 + math.exp(-1))), 0.0) < 1


@pytest.mark.parametrize(("delta", "epsilon"), [(0.0, 1.0), (0.002, 2.0)])
def test_laplace_noise_whose_clearest_examples_are_guessed(delta: float, epsilon: float):
    """Scores b + Laplace(1 / epsilon); with probability delta an example's coin is told."""
    examples, each, rng = 100, 10, np.random.default_rng(3)
    bound = cache(lambda right: lower_bound(examples, 2 * each, right, delta))
    bounds = []
    for _ in range(300):
        included = rng.random(examples) < 0.5
        score = included + rng.laplace(scale=1 / epsilon, size=examples)
        score += np.where(rng.random(examples) < delta, np.where(included, 1e9, -1e9), 0)
        inside, outside = guess_inclusion(score, each)
        bounds.append(bound(int(included[inside].sum() + (~included[outside]).sum())))
    assert np.mean(np.array(bounds) > epsilon) <= 0.05
    assert max(bounds) > 0


def test_the_clearest_are_guessed():
    inside, outside = guess_inclusion(np.array([0.1, 5.0, -2.0, 0.0, 3.0]), 2)
    assert sorted(inside) == [1, 4]
    assert sorted(outside) == [2, 3]
