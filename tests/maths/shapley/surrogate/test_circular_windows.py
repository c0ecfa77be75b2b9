"""Windows on circles: two gains of every player at every size, values of games that are known, honest errors."""

import numpy as np
import pytest
from games import FAMILIES, utilities

from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.surrogate.circular_windows import circle_gains, circle_sizes, circle_values


def test_gains_by_hand():
    # U = (sum of the numbers 1, 2, 3)^2 along the circle 2, 0, 1, that is 3, 1, 2
    game = Utilities(3, lambda members: (members @ np.array([1.0, 2.0, 3.0])) ** 2)
    gain = circle_gains(np.array([2, 0, 1]), 3, game)
    assert gain[0].tolist() == [1, 4, 9]
    # player 0 joins 3, and stands before 2: (16 - 9 + 9 - 4) / 2
    assert gain[1].tolist() == [6, (9 - 1 + 25 - 9) / 2, (25 - 4 + 16 - 1) / 2]
    assert gain[2].tolist() == [36 - 25, 36 - 16, 36 - 9]


@pytest.mark.parametrize("players", [2, 13, 100, 200])
def test_the_cost_is_bounded(players: int):
    sizes = np.array(circle_sizes(players))
    assert sizes[0] == players
    assert (sizes * players).sum() <= 90_000


@pytest.mark.parametrize("family", FAMILIES)
def test_known_games(family: str):
    inside = []
    for seed in range(5):
        utility = FAMILIES[family](7, np.random.default_rng(seed))
        values, errors = circle_values(utilities(utility), np.random.default_rng(seed))
        assert values.sum() == pytest.approx(utility[-1] - utility[0])
        inside.append(np.abs(values - exact(utility)) <= 1.96 * errors + 1e-9)
    assert np.mean(inside) >= 0.9
