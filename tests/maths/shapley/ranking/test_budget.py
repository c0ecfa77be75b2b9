"""How many coalitions a round may ask for, and where exact values cost no more."""

from fedexp.maths.shapley.ranking.budget import choose_method, min_coalitions, surrogate_budget


def test_what_auto_stands_for():
    default = [choose_method(players, None) for players in (0, 1, 6, 7, 200, 1000)]
    assert default == ["exact", "exact", "exact", "surrogate", "surrogate", "surrogate"]
    assert choose_method(10, 1024) == "exact"  # who gives more gets more
    assert choose_method(10, 1023) == "surrogate"
    assert choose_method(6, 50) == "surrogate"
    assert choose_method(21, 2**21) == "surrogate"


def test_the_budget_of_the_surrogate():
    assert [surrogate_budget(players, None) for players in (3, 10, 100, 200)] == [36, 120, 1200, 2048]
    assert [surrogate_budget(10, bound) for bound in (4, 60, 500)] == [22, 60, 500]
    assert [min_coalitions(players) for players in (1, 2, 3, 4)] == [2, 4, 8, 10]
