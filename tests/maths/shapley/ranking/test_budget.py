"""How many coalitions permutations ask for, against counting; and where exact values cost no more."""

from itertools import permutations, product

import numpy as np
import pytest

from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.ranking.budget import (
    choose_method,
    coalition_budget,
    coalitions_by_size,
    expected_coalitions,
    min_coalitions,
    surrogate_budget,
)
from fedexp.maths.shapley.sampling.permutations import prefixes, random_permutations


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
        utilities(prefixes(random_permutations(10, rng)))
    assert expected_coalitions(10, 500) == pytest.approx(947.2, abs=0.1)
    assert utilities.evaluated_count == pytest.approx(947, abs=20)


def test_sizes_by_hand():
    assert [coalitions_by_size(players) for players in (0, 1, 2, 5)] == [[], [], [2], [5, 10, 10, 5]]


def test_more_players_than_a_float_can_count_the_coalitions_of():
    """Of 3,000 players' coalitions only the smallest and the largest are ever drawn twice in 10 permutations."""
    alone = 3000 * (1 - (1 - 1 / 3000) ** 10)
    assert expected_coalitions(3000, 10) == pytest.approx(2 + 2 * alone + 2997 * 10, rel=1e-8)


def test_what_auto_stands_for():
    default = [choose_method(players, None) for players in (0, 1, 6, 7, 200, 201)]
    assert default == ["exact", "exact", "exact", "surrogate", "surrogate", "leverage"]
    assert choose_method(10, 1024) == "exact"  # who gives more gets more
    assert choose_method(10, 1023) == "surrogate"
    assert choose_method(6, 50) == "surrogate"
    assert choose_method(21, 2**21) == "surrogate"


def test_the_budget_of_the_surrogate():
    assert [surrogate_budget(players, None) for players in (3, 10, 100, 200)] == [36, 120, 1200, 2048]
    assert [surrogate_budget(10, bound) for bound in (4, 60, 500)] == [22, 60, 500]


def test_the_budget_in_coalitions():
    assert coalition_budget(10, 200, 2048) == 703
    assert coalition_budget(100, 5000, 2048) == 2048
    assert coalition_budget(8, 1, 2048) == min_coalitions(8) == 18
    assert [min_coalitions(players) for players in (1, 2, 3, 4)] == [2, 4, 8, 10]
