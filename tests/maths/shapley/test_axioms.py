"""The axioms for every estimator: exactly where every coalition is affordable, else within the stated errors."""

import numpy as np
import pytest
from games import FAMILIES, Method, evaluating, unrelated
from hypothesis import given, settings
from hypothesis import strategies as st

from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.game.exact import exact

SAMPLING = ("gtg", "surrogate")
CHOSEN = ("auto", "exact", "surrogate")  # exact once all coalitions are known


def estimate(method: Method, utility: np.ndarray, seed: int = 0, **keys) -> Estimate:
    players = len(utility).bit_length() - 1
    way = Shapley(method=method, stop="budget", truncation=0, truncation_between=0, **keys)
    return way.estimate(players, evaluating(utility), np.random.default_rng(seed))


def within(found: Estimate, difference: np.ndarray, times: float = 4.5) -> bool:
    assert found.errors is not None
    return bool((np.abs(difference) <= times * found.errors + 1e-9).all())


@pytest.mark.parametrize("players", range(1, 7))
@pytest.mark.parametrize("method", CHOSEN)
def test_with_every_coalition_values_are_exact(method: Method, players: int):
    utility = unrelated(players, np.random.default_rng(players))
    found = estimate(method, utility, permutations_per_client=400, coalitions=64)
    assert found.coalitions == 2**players
    assert found.values == pytest.approx(exact(utility))
    assert (found.error, found.converged) == (0.0, True)
    assert found.errors == pytest.approx(np.zeros(players))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", SAMPLING)
def test_efficiency(method: Method, family: str):
    utility = FAMILIES[family](8, np.random.default_rng(0))
    found = estimate(method, utility, coalitions=120)
    assert found.values.sum() == pytest.approx(utility[-1] - utility[0])


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("method", SAMPLING)
@given(seed=st.integers(0, 2**32 - 1))
def test_symmetry(method: Method, seed: int):
    size = (np.arange(256)[:, None] >> np.arange(8) & 1) @ np.array([1, 1, 0, 0, 0, 0, 0, 0])
    alike = np.random.default_rng(seed).normal(size=(64, 3))[np.arange(256) >> 2, size]  # players 0 and 1 are alike
    found = estimate(method, alike, seed, coalitions=120)
    assert found.errors is not None
    assert abs(found.values[0] - found.values[1]) <= 4.5 * (found.errors[0] + found.errors[1])


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("method", SAMPLING)
@given(seed=st.integers(0, 2**32 - 1))
def test_null_player(method: Method, seed: int):
    half = unrelated(7, np.random.default_rng(seed))
    found = estimate(method, np.concatenate([half, half]), seed, coalitions=120)
    assert found.errors is not None
    assert abs(found.values[-1]) <= 4.5 * found.errors[-1] + 1e-9
    if method == "gtg":  # nothing along any permutation
        assert found.values[-1] == 0


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("method", SAMPLING)
@given(seed=st.integers(0, 2**32 - 1))
def test_additivity_with_the_same_draws(method: Method, seed: int):
    rng = np.random.default_rng(seed)
    one, other = unrelated(7, rng), unrelated(7, rng)
    whole = estimate(method, one + other, seed, coalitions=80)
    parts = [estimate(method, game, seed, coalitions=80) for game in (one, other)]
    if method == "surrogate":  # each game has a kernel of its own
        assert within(whole, whole.values - exact(one + other))
        return
    assert whole.values == pytest.approx(parts[0].values + parts[1].values)
    assert within(whole, whole.values - exact(one + other), times=8)
