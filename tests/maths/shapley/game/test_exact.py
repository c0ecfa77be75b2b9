"""Exact values against the definition, and the axioms as properties."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import all_coalitions

TABLES = st.integers(1, 8).flatmap(
    lambda players: st.lists(st.floats(-10, 10), min_size=2**players, max_size=2**players).map(np.array)
)


def by_definition(utility: np.ndarray) -> np.ndarray:
    """The mean marginal contribution over all orders in which the players can arrive."""
    players = len(utility).bit_length() - 1
    total, orders = np.zeros(players), list(permutations(range(players)))
    for order in orders:
        coalition = 0
        for player in order:
            total[player] += utility[coalition | 1 << player] - utility[coalition]
            coalition |= 1 << player
    return total / len(orders)


def test_the_glove_game_by_hand():
    # players 0 and 1 hold a left glove each, player 2 the right one: a pair is worth 1
    utility = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    assert exact(utility) == pytest.approx([1 / 6, 1 / 6, 4 / 6])


def test_two_players_by_hand():
    # alone 1 and 2, together 5: each gets its own and half of the 2 that they make together
    assert exact(np.array([0.0, 1.0, 2.0, 5.0])) == pytest.approx([2.0, 3.0])


@pytest.mark.parametrize("players", range(1, 9))
def test_equals_the_definition(players: int):
    utility = np.random.default_rng(players).normal(size=2**players)
    assert exact(utility) == pytest.approx(by_definition(utility), abs=1e-12)


@given(TABLES)
def test_efficiency(utility: np.ndarray):
    assert exact(utility).sum() == pytest.approx(utility[-1] - utility[0], abs=1e-9)


@given(TABLES, st.data())
def test_symmetry(utility: np.ndarray, data: st.DataObject):
    players = len(utility).bit_length() - 1
    renamed = np.array(data.draw(st.permutations(range(players))))
    members = all_coalitions(players)
    moved = (members[:, renamed] << np.arange(players)).sum(axis=1)  # player renamed[k] is now called k
    assert exact(utility)[renamed] == pytest.approx(exact(utility[np.argsort(moved)]), abs=1e-9)


@given(TABLES)
def test_null_player(utility: np.ndarray):
    doubled = np.concatenate([utility, utility])  # the last player changes nothing
    values = exact(doubled)
    assert values[-1] == pytest.approx(0, abs=1e-12)
    assert values[:-1] == pytest.approx(exact(utility), abs=1e-9)


@settings(max_examples=50)
@given(TABLES, st.integers(0, 2**32 - 1))
def test_additivity(utility: np.ndarray, seed: int):
    other = np.random.default_rng(seed).normal(size=len(utility))
    assert exact(utility + other) == pytest.approx(exact(utility) + exact(other), abs=1e-9)


def test_coalitions_are_in_the_order_of_their_bits():
    assert all_coalitions(2).tolist() == [[False, False], [True, False], [False, True], [True, True]]
