"""Whether the stated errors are honest: how often plus and minus 1.96 of them hold the exact value, in 100 games each.

Also what accuracy a number of coalitions buys on games that look like a validation loss.
"""

from functools import cache

import numpy as np
import pytest
from games import FAMILIES, Method, evaluating

from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.game.exact import exact

GAMES, PLAYERS = 100, 8
METHODS = ("gtg", "permutations", "antithetic", "stratified", "kernel", "leverage")


@cache
def estimates(method: Method, family: str) -> list[tuple[Estimate, np.ndarray]]:
    """What a method says of 100 games with room for about 150 of the 256 coalitions, and the exact values."""
    found = []
    for seed in range(GAMES):
        utility = FAMILIES[family](PLAYERS, np.random.default_rng([seed, 1]))
        way = Shapley(method=method, stop="budget", coalitions=150, truncation=0, truncation_between=0)
        rng = np.random.default_rng([seed, 2])
        found.append((way.estimate(PLAYERS, evaluating(utility), rng), exact(utility)))
    return found


def held(method: Method, family: str) -> float:
    inside = [
        np.abs(found.values - true) <= 1.96 * found.errors + 1e-9
        for found, true in estimates(method, family)
        if found.errors is not None
    ]
    assert len(inside) == GAMES
    return float(np.mean(inside))


@pytest.mark.parametrize("family", ["unrelated", "threshold", "losing"])
@pytest.mark.parametrize("method", METHODS)
def test_the_95_percent_intervals_hold_the_exact_value(method: Method, family: str):
    assert 0.90 <= held(method, family) <= 0.99


@pytest.mark.parametrize("method", METHODS)
def test_an_additive_game_is_known_without_error(method: Method):
    for found, true in estimates(method, "additive"):
        assert found.values == pytest.approx(true)
        assert found.errors == pytest.approx(np.zeros(PLAYERS), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_bound_on_coalitions_is_kept(method: Method):
    assert max(found.coalitions for found, _ in estimates(method, "losing")) <= 150


def test_regressions_are_the_most_accurate_for_their_coalitions():
    def error(method: Method) -> float:
        return float(np.mean([np.abs(found.values - true).max() for found, true in estimates(method, "losing")]))

    assert error("leverage") < error("kernel") < 0.5 * min(error("antithetic"), error("stratified"), error("gtg"))
