"""The part: few and many players, budgets, when to stop, and what it tells."""

import numpy as np
import pytest
from games import Method, Stop, evaluating, losing

from fedexp.core.errors import ConfigError
from fedexp.maths.shapley.estimate import Estimate, Shapley

METHODS = ("auto", "gtg", "surrogate")


def concave(members: np.ndarray) -> np.ndarray:
    """Players of growing worth whose contributions shrink as the coalition grows."""
    return np.sqrt(members @ np.linspace(0, 1, members.shape[1]) ** 2)


@pytest.mark.parametrize("players", [0, 1, 2])
@pytest.mark.parametrize("method", [*METHODS, "exact"])
@pytest.mark.parametrize("stop", ["values", "ranking", "budget"])
def test_few_players(method: Method, players: int, stop: Stop):
    way = Shapley(method=method, stop=stop)
    found = way.estimate(players, lambda members: members.sum(axis=1) * 2.0, np.random.default_rng(0))
    assert found.values.tolist() == [2.0] * players
    assert found.errors is not None
    assert found.errors.tolist() == [0.0] * players


@pytest.mark.parametrize(
    ("method", "keys"), [("gtg", {"truncation": 0, "convergence": "gtg_authors"}), ("surrogate", {})]
)
def test_many_players(method: Method, keys: dict):
    found = Shapley(method=method, **keys).estimate(30, concave, np.random.default_rng(0))
    assert found.errors is not None
    assert (np.diff(found.values) > -3 * (found.errors[1:] + found.errors[:-1])).all()
    assert found.values.sum() == pytest.approx(concave(np.ones((1, 30)))[0])


def test_the_bound_is_what_is_asked_for():
    found = Shapley(method="surrogate", coalitions=300, stop="budget").estimate(20, concave, np.random.default_rng(0))
    assert 200 < found.coalitions <= 300


class TestStop:
    """When a round has had enough: its values, its ranking, its budget."""

    utility = losing(12, np.random.default_rng(0))

    def found(self, sure=None, **keys) -> Estimate:
        return Shapley(**keys).estimate(12, evaluating(self.utility), np.random.default_rng(0), sure)

    @pytest.mark.parametrize("method", ["gtg", "surrogate"])
    def test_a_settled_ranking_saves_coalitions(self, method: Method):
        soon = self.found(lambda values, errors: 1.0, method=method, stop="ranking")
        late = self.found(lambda values, errors: 0.94, method=method, stop="ranking")
        assert soon.converged
        assert not late.converged
        assert soon.coalitions < 0.6 * late.coalitions

    def test_four_looks_share_the_doubt(self):
        assert self.found(lambda values, errors: 0.99, method="gtg", stop="ranking").converged
        assert not self.found(lambda values, errors: 0.98, method="gtg", stop="ranking").converged
        assert self.found(lambda values, errors: 0.98, method="gtg", stop="ranking", confidence=0.9).converged

    def test_a_ranking_that_nobody_knows_takes_the_budget(self):
        for sure in (None, lambda values, errors: None):
            found = self.found(sure, method="surrogate", stop="ranking")
            assert (found.converged, found.coalitions) == (False, 144)

    def test_a_budget_is_spent_whatever_has_converged(self):
        spent = self.found(method="gtg", stop="budget")
        early = self.found(method="gtg", convergence="gtg_authors")
        assert early.converged
        assert spent.coalitions > early.coalitions


def test_errors_relative_to_the_spread_by_hand():
    assert Estimate(np.array([1.0, 3.0]), "", 0, True, None, np.array([0.1, 0.5])).relative_error == 0.25
    assert Estimate(np.ones(2), "", 0, True, None, np.zeros(2)).relative_error == 0.0
    assert Estimate(np.ones(2), "", 0, True, None, np.ones(2)).relative_error is None
    assert Estimate(np.ones(2), "", 0, True, None).relative_error is None


@pytest.mark.parametrize("keys", [{"stop": "never"}, {"coalitions": 3}, {"confidence": 1.0}, {"method": "guess"}])
def test_wrong_settings_are_refused(keys: dict):
    with pytest.raises(ConfigError, match=f"Shapley.{next(iter(keys))} must be"):
        Shapley(**keys)
