"""Methods against each other, convergence tests by hand, and what is recorded."""

import numpy as np
import pytest
from games import Method

from fedexp.maths.shapley.estimate import Shapley
from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import WORST, Utilities
from fedexp.maths.shapley.sampling.convergence import flexcs, gtg_authors, per_client


def game(players: int, seed: int = 0):
    """Utilities of a random game, and its table."""
    utility = np.random.default_rng(seed).normal(size=2**players).cumsum() / 10

    def evaluate(members: np.ndarray) -> np.ndarray:
        return utility[(members << np.arange(players)).sum(axis=1)]

    return evaluate, utility


def test_auto_is_exact_while_all_coalitions_are_affordable():
    evaluate, utility = game(6)
    found = Shapley().estimate(6, evaluate, np.random.default_rng(0))
    assert (found.method, found.coalitions, found.converged, found.error) == ("exact", 64, True, 0.0)
    assert found.values == pytest.approx(exact(utility))
    assert Shapley().estimate(9, game(9)[0], np.random.default_rng(0)).method == "surrogate"
    few = Shapley(coalitions=50)
    assert few.estimate(6, game(6)[0], np.random.default_rng(0)).method == "surrogate"


def test_samples_approach_the_exact_values_and_stay_efficient():
    evaluate, utility = game(5)
    way = Shapley(method="gtg", permutations_per_client=2000, truncation=0, truncation_between=0, compare=True)
    found = way.estimate(5, evaluate, np.random.default_rng(1))
    assert found.values.sum() == pytest.approx(utility[-1] - utility[0])
    assert found.error == pytest.approx(np.abs(found.values - exact(utility)).max())
    assert found.error is not None
    assert found.error < 0.05


def test_the_error_is_known_only_where_the_exact_values_are():
    few = Shapley(method="gtg", permutations_per_client=1, truncation_between=0)
    assert few.estimate(8, game(8)[0], np.random.default_rng(0)).error is None
    compared = Shapley(method="gtg", permutations_per_client=1, truncation_between=0, compare=True)
    found = compared.estimate(8, game(8)[0], np.random.default_rng(0))
    assert found.error is not None
    assert found.coalitions < 256  # what the comparison cost is not counted


def test_a_round_that_changes_nothing_is_truncated():
    utility = np.array([1.0, 5.0, 3.0, 1.00005])
    found = Shapley(method="gtg").estimate(
        2, lambda members: utility[(members << np.arange(2)).sum(axis=1)], np.random.default_rng(0)
    )
    assert (found.values.tolist(), found.coalitions, found.converged) == ([0.0, 0.0], 2, True)


@pytest.mark.parametrize("method", ["auto", "exact", "gtg"])
@pytest.mark.parametrize("players", [0, 1])
def test_nobody_and_one_alone(method: Method, players: int):
    found = Shapley(method=method).estimate(
        players, lambda members: members.sum(axis=1) * 2.0, np.random.default_rng(0)
    )
    assert found.values.tolist() == [2.0] * players


def test_a_loss_that_is_not_finite_is_the_worst_and_values_stay_finite():
    utilities = Utilities(2, lambda members: np.where(members.all(axis=1), -np.inf, 1.0))
    assert utilities(np.array([[True, True], [True, False]])).tolist() == [WORST, 1.0]
    broken = Shapley().estimate(2, lambda members: np.full(len(members), np.nan), np.random.default_rng(0))
    assert np.isfinite(broken.values).all()


def test_each_coalition_is_evaluated_once():
    asked = []

    def evaluate(members: np.ndarray) -> np.ndarray:
        asked.extend(map(tuple, members.tolist()))
        return members.sum(axis=1) + 0.5 * members[:, 0] * members[:, 1]

    Shapley(method="gtg").estimate(6, evaluate, np.random.default_rng(0))
    assert len(asked) == len(set(asked)) <= 64


def test_exact_values_of_too_many_are_refused():
    with pytest.raises(ValueError, match="exact Shapley values of 30 participants need"):
        Shapley(method="exact").estimate(30, lambda members: members.sum(axis=1), np.random.default_rng(0))


class TestConvergence:
    """The value of two clients, settled or not, in 21 running means."""

    still = np.tile([2.0, -1.0], (21, 1))

    def test_needs_twenty_means_to_compare_with(self):
        assert not per_client(self.still[:20])
        assert per_client(self.still)

    def test_every_client_must_have_settled(self):
        moving = self.still.copy()
        moving[:-1, 1] = -1.011  # mean relative distance 0.011
        assert not per_client(moving)
        moving[:-1, 1] = -1.009
        assert per_client(moving)

    def test_a_value_of_nothing_has_settled(self):
        nothing = self.still.copy()
        nothing[:, 1] = 0.0
        nothing[3, 1] = 5.0
        assert per_client(nothing)

    def test_the_thesis_code_never_settles_when_the_round_made_things_worse(self):
        assert flexcs(self.still)
        assert not flexcs(-self.still)
        cancelling = self.still + np.linspace(-0.9, 0, 21)[:, None] * [
            1,
            -1,
        ]  # the clients move, their average does not
        assert flexcs(cancelling)
        assert not per_client(cancelling)

    def test_the_authors_wait_for_thirty_permutations(self):
        assert not gtg_authors(np.tile([2.0, -1.0], (30, 1)))
        means = np.tile([2.0, -1.0], (31, 1))
        assert gtg_authors(means)
        means[-5] = [2.0, -1.11]  # mean relative distance 0.055
        assert not gtg_authors(means)
