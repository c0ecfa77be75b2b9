"""The regression on pairs of coalitions: what is enumerated, what is drawn, and exact values where all is known."""

import math

import numpy as np
import pytest
from games import additive, losing

from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import all_coalitions
from fedexp.maths.shapley.surrogate.kernel_regression import kernel_pairs, kernel_weight, regression_weights


@pytest.mark.parametrize("players", [2, 5, 6])
def test_the_weights_of_the_sizes_are_those_of_the_kernel(players: int):
    kernel = [0.0] * (players // 2 + 1)
    for row in all_coalitions(players):
        size = int(row.sum())
        if 0 < size < players:
            kernel[min(size, players - size)] += 1 / (math.comb(players, size) * size * (players - size))
    assert [kernel_weight(players, size) for size in range(1, players // 2 + 1)] == pytest.approx(kernel[1:])


def test_the_smallest_sizes_are_enumerated_and_the_others_drawn_by_weight():
    members, weight = kernel_pairs(10, 470, np.random.default_rng(0))
    sizes = members.sum(axis=1)
    assert np.bincount(sizes)[:4].tolist() == [0, 10, 45, 120]
    assert len({row.tobytes() for row in members[:175]}) == 175
    assert set(sizes[175:]) == {4, 5}
    assert (sizes[175:] == 5).mean() == pytest.approx((1 / 25) / (1 / 25 + 2 / 24), abs=0.06)
    assert members[sizes == 5, 0].all()  # of two halves the one with the first player
    assert weight.sum() == pytest.approx(sum(kernel_weight(10, size) for size in range(1, 6)))


@pytest.mark.parametrize("family", [additive, losing])
def test_the_values_of_nine_players_from_nearly_all_coalitions(family):
    utility = family(9, np.random.default_rng(0))
    coalitions, weights = regression_weights(9, 20_000, np.random.default_rng(1))
    whole = utility[-1] - utility[0]
    values = whole / 9 + (utility[(coalitions << np.arange(9)).sum(axis=1)] - coalitions.mean(axis=1) * whole) @ weights
    close = 1e-9 if family is additive else 0.02 * np.ptp(exact(utility))
    assert values == pytest.approx(exact(utility), abs=close)
