"""Walks along permutations by hand; truncation; what is drawn."""

import numpy as np
import pytest

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.permutations import guided_permutations, random_permutations, walk


def table(utility: list[float]) -> Utilities:
    values = np.array(utility)
    players = len(utility).bit_length() - 1
    return Utilities(players, lambda members: values[(members << np.arange(players)).sum(axis=1)])


def test_marginals_by_hand_go_to_the_player_at_the_position():
    utilities = table([0, 1, 2, 5, 3, 4, 7, 10])
    marginal = walk(np.array([[2, 0, 1], [1, 2, 0]]), utilities, 0.0)
    # order 2, 0, 1 passes 3, 4, 10; order 1, 2, 0 passes 2, 7, 10
    assert marginal.tolist() == [[1.0, 6.0, 3.0], [3.0, 2.0, 5.0]]


def test_a_walk_near_the_full_value_stops_evaluating():
    utilities = table([0, 9.5, 0, 7, 0, 7, 7, 10])
    marginal = walk(np.array([[0, 1, 2], [1, 0, 2]]), utilities, 1.0)
    assert marginal[0].tolist() == [9.5, 0.0, 0.0]  # 9.5 is within 1 of 10
    assert marginal[1].tolist() == [7.0, 0.0, 3.0]
    assert utilities.evaluated_count == 5  # nobody, all, {0}, {1}, {0, 1}


@pytest.mark.parametrize("draw", [guided_permutations, random_permutations])
@pytest.mark.parametrize("players", [1, 2, 5])
def test_permutations_are_permutations(draw, players: int):
    drawn = draw(players, np.random.default_rng(0))
    assert drawn.shape == (players, players)
    assert (np.sort(drawn, axis=1) == np.arange(players)).all()


def test_every_player_opens_one_guided_permutation_and_the_rest_is_random():
    rng = np.random.default_rng(0)
    seen = {tuple(row) for _ in range(60) for row in guided_permutations(3, rng)}
    assert guided_permutations(4, rng)[:, 0].tolist() == [0, 1, 2, 3]
    assert len(seen) == 6
