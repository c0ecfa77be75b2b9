"""How many coalitions permutations ask for, against counting; and where exact values pay."""

from itertools import permutations, product

import numpy as np
import pytest

from fedexp.maths.shapley.affordable import coalition_budget, exact_pays, expected_coalitions, least
from fedexp.maths.shapley.permutations import prefixes, shuffled
from fedexp.maths.shapley.utilities import Utilities


@pytest.mark.parametrize(("players", "count"), [(2, 3), (3, 2), (3, 3), (4, 2)])
def test_the_expectation_is_the_mean_over_all_choices_of_permutations(players: int, count: int):
    passed = [{frozenset(order[:size]) for size in range(players + 1)} for order in permutations(range(players))]
    met = [len(set().union(*chosen)) for chosen in product(passed, repeat=count)]
    assert expected_coalitions(players, count) == pytest.approx(np.mean(met))


def test_by_hand():
    # two permutations of two players: nobody, all, {0}, and {1} in half of the cases
    assert expected_coalitions(2, 2) == pytest.approx(3.5)
    assert [expected_coalitions(players, 5) for players in (0, 1)] == [1, 2]


def test_ten_players_with_the_default_budget_ask_for_nearly_all():
    utilities, rng = Utilities(10, lambda members: members.sum(axis=1)), np.random.default_rng(0)
    for _ in range(50):
        utilities(prefixes(shuffled(10, rng)))
    assert expected_coalitions(10, 500) == pytest.approx(947.2, abs=0.1)
    assert utilities.evaluated == pytest.approx(947, abs=20)


def test_exact_by_default_up_to_eleven_players():
    assert [players for players in range(30) if exact_pays(players, 50 * players, None)] == list(range(12))
    assert exact_pays(12, 400 * 12, None)  # who gives more gets more
    assert not exact_pays(10, 20 * 10, None)
    assert not exact_pays(10, 500, 1000)
    assert not exact_pays(21, 10**9, None)


def test_the_budget_in_coalitions():
    assert coalition_budget(10, 200, 2048) == 703
    assert coalition_budget(100, 5000, 2048) == 2048
    assert coalition_budget(8, 1, 2048) == least(8) == 18
    assert [least(players) for players in (1, 2, 3, 4)] == [2, 4, 8, 10]
