"""Whether the stated errors of samples are honest: how often plus and minus 1.96 of them hold the exact value."""

from functools import cache

import numpy as np
import pytest
from games import FAMILIES, evaluating

from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.game.exact import exact

GAMES, PLAYERS = 100, 8


@cache
def estimates(family: str) -> list[tuple[Estimate, np.ndarray]]:
    """What GTG-Shapley says of 100 games with room for about 150 of the 256 coalitions, and the exact values."""
    found = []
    for seed in range(GAMES):
        utility = FAMILIES[family](PLAYERS, np.random.default_rng([seed, 1]))
        way = Shapley(method="gtg", stop="budget", coalitions=150, truncation=0, truncation_between=0)
        rng = np.random.default_rng([seed, 2])
        found.append((way.estimate(PLAYERS, evaluating(utility), rng), exact(utility)))
    return found


def held(family: str) -> float:
    inside = [
        np.abs(found.values - true) <= 1.96 * found.errors + 1e-9
        for found, true in estimates(family)
        if found.errors is not None
    ]
    assert len(inside) == GAMES
    return float(np.mean(inside))


@pytest.mark.parametrize("family", ["unrelated", "threshold", "losing"])
def test_the_95_percent_intervals_hold_the_exact_value(family: str):
    assert 0.90 <= held(family) <= 0.99


def test_an_additive_game_is_known_without_error():
    for found, true in estimates("additive"):
        assert found.values == pytest.approx(true)
        assert found.errors == pytest.approx(np.zeros(PLAYERS), abs=1e-9)


def test_the_bound_on_coalitions_is_kept():
    assert max(found.coalitions for found, _ in estimates("losing")) <= 150
