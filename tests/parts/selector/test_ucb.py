from dataclasses import replace

import numpy as np
import pytest
from stages import Stage, play

from fedexp.maths.shapley.estimate import Shapley
from fedexp.parts.selector.ucb import UCB, upper_bounds

WORTH = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])


@pytest.mark.law("selector=ucb", "a client without a value has an infinite bound")
def test_bounds_by_hand():
    # half widths of 0.5 * sqrt(4 / N)
    bounds = upper_bounds(np.array([1.0, 2.0, 3.0]), np.array([1, 4, 0]), 4.0, 0.5)
    assert bounds == pytest.approx([2.0, 2.5, np.inf])
    assert upper_bounds(np.array([1.0, 2.0]), np.array([1, 0]), 7.0, 0.0).tolist() == [1.0, np.inf]


def test_five_rounds_by_hand(equal_sizes: Stage):
    game = replace(equal_sizes, utility=lambda coalition: float(WORTH[list(coalition)].sum()))
    owners, memories = play(UCB(count=2, beta=2.0, shapley=Shapley()), [game] * 6)
    assert sorted(client for owner in owners[:3] for client in owner) == [0, 1, 2, 3, 4, 5]
    # all bounds are equally wide until 0 and 2 have taken part more often
    assert owners[3] == [0, 2]
    # round 5: ln 5 = 1.61; 0: 5 + 2 sqrt(.80) = 6.79, 2: 5.79, 4: 3 + 2 sqrt(1.61) = 5.54: still 0 and 2
    assert owners[4] == [0, 2]
    # round 6: ln 6 = 1.79; 2: 4 + 2 sqrt(.597) = 5.55, 4: 3 + 2 sqrt(1.79) = 5.68: now 0 and 4
    assert owners[5] == [0, 4]
    assert memories[5]["count"].tolist() == [4, 1, 3, 1, 2, 1]


@pytest.mark.law("selector=ucb", "beta = 0 asks the clients that GreedyFed asks")
def test_without_width_it_is_greedyfed(equal_sizes: Stage):
    from fedexp.parts.selector.greedyfed import GreedyFed

    game = replace(equal_sizes, utility=lambda coalition: float(WORTH[list(coalition)].sum()))
    greedy, _ = play(GreedyFed(count=2, shapley=Shapley()), [game] * 6)
    narrow, _ = play(UCB(count=2, beta=0.0, shapley=Shapley()), [game] * 6)
    assert greedy == narrow


def test_who_is_away_in_its_turn_is_made_up_for_in_the_random_order(equal_sizes: Stage):
    game = replace(equal_sizes, utility=lambda coalition: float(WORTH[list(coalition)].sum()))
    order = [client for owners in play(UCB(count=1, shapley=Shapley()), [game] * 6)[0] for client in owners]
    away = [replace(game, busy=np.array(busy, np.int64)) for busy in ([order[0]], [], [], [])]
    owners, _ = play(UCB(count=2, shapley=Shapley()), away)
    assert owners[0] == sorted([order[1], order[2]])
    assert owners[1] == sorted([order[3], order[4]])  # 2 has taken part
    assert order[5] in owners[2]
    assert order[0] in owners[2]


def test_places_left_in_the_opening_go_to_the_highest_bounds(equal_sizes: Stage):
    game = replace(equal_sizes, utility=lambda coalition: float(WORTH[list(coalition)].sum()))
    for seed in range(5):
        owners, _ = play(UCB(count=4, shapley=Shapley()), [replace(game, seed=seed)] * 2)
        best = sorted(owners[0], key=lambda client: -WORTH[client])[:2]
        assert set(owners[1]) == set(range(6)) - set(owners[0]) | set(best)


def test_the_other_logarithm_is_a_round_behind(equal_sizes: Stage):
    game = replace(equal_sizes, utility=lambda coalition: float(WORTH[list(coalition)].sum()))
    game = [game] * 5
    # round 5 with ln 5: 2: 4 + 2.8 sqrt(1.61 / 2) = 6.51, 4: 3 + 2.8 sqrt(1.61) = 6.55; with ln 4: 6.33 and 6.30
    assert play(UCB(count=2, beta=2.8, shapley=Shapley()), game)[0][4] == [0, 4]
    assert play(UCB(count=2, beta=2.8, logarithm="t", shapley=Shapley()), game)[0][4] == [0, 2]
