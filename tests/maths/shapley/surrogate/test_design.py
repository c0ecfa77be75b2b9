"""Which coalitions the surrogate asks for, and in which order."""

import numpy as np
import pytest

from fedexp.maths.shapley.surrogate.design import coalition_sequence


def sequence(players: int, budget: int) -> np.ndarray:
    return coalition_sequence(players, budget, np.random.default_rng(0))


@pytest.mark.parametrize("players", range(7))
@pytest.mark.parametrize("budget", [16, 64, 1000])
def test_few_players_are_asked_all(players: int, budget: int):
    found = sequence(players, budget)
    assert len(found) == min(2**players, budget)
    assert len(np.unique(found, axis=0)) == len(found)


def test_the_order_by_hand():
    size = sequence(10, 80).sum(axis=1).tolist()
    assert size[:22] == [0, 10] + [1] * 10 + [9] * 10
    assert size[22:67] == [2] * 45
    assert min(size[67:]) > 2


def test_where_pairs_are_too_many_everybody_is_in_as_many():
    found = sequence(40, 480)
    pairs = found[found.sum(axis=1) == 2]
    assert len(pairs) >= 0.75 * (480 - 82) - 1
    times = pairs[:280].sum(axis=0)
    assert times.max() - times.min() == 0
    assert len(np.unique(found.sum(axis=1))) > 20


def test_a_smaller_budget_is_a_part_of_a_larger_one():
    assert (sequence(10, 80) == sequence(10, 150)[:80])[:67].all()
