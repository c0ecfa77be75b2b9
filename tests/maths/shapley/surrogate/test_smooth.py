"""The fitted surface: by hand, against the textbook formula, leave-one-out against leaving out, and its limits."""

from dataclasses import replace

import numpy as np
import pytest
from games import losing, threshold, unrelated

from fedexp.maths.shapley.game.utilities import all_coalitions
from fedexp.maths.shapley.surrogate.smooth import Surface, fit_surface, kernel, mixture_weights, unknown_weight


def surface(players: int, utility: np.ndarray, some: np.ndarray, share: np.ndarray | None = None, **keys) -> Surface:
    members = all_coalitions(players)[some]
    weight = mixture_weights(members, np.ones(players) if share is None else share)
    if keys:
        return Surface(weight, members.astype(float), utility[some], **keys)
    return fit_surface(weight, members.astype(float), utility[some])


def test_mixture_weights_by_hand():
    members = np.array([[True, True, False], [True, False, True], [False, True, False], [False, False, False]])
    weight = mixture_weights(members, np.array([3.0, 0.0, 1.0]))
    assert weight.tolist() == [[1, 0, 0], [0.75, 0, 0.25], [0, 0, 0], [0, 0, 0]]


def test_the_kernel_by_hand():
    found = kernel(np.eye(2), np.array([[1.0, 0.0], [0.5, 0.5]]), 0.5)
    assert found == pytest.approx(np.exp(-np.array([[0, 0.5], [2, 0.5]]) / 0.5))


def test_two_players_by_hand():
    # alone they are worth 1 and 3; halfway between them the mean says 2, and symmetry leaves it there
    one = surface(2, np.array([0.0, 1.0, 3.0, 9.0]), np.array([1, 2]), additive=False, length=1.0, nugget=0.0)
    assert one.slope.size == 2
    assert one.predict(np.array([[0.5, 0.5]]), np.ones((1, 2))) == pytest.approx([2.0])


def test_leave_one_out_is_leaving_one_out():
    utility, some = losing(5, np.random.default_rng(0)), np.arange(1, 24)
    keys = {"additive": False, "length": 0.7, "nugget": 0.01}
    residual, variance, _ = surface(5, utility, some, **keys).leave_one_out
    without = surface(5, utility, np.delete(some, 8), **keys)
    members = all_coalitions(5)[some[8:9]]
    weight = mixture_weights(members, np.ones(5))
    predicted = without.predict(weight, members.astype(float))
    own = replace(without, utility=without.utility).variance(weight, members.astype(float), np.ones((1, 1)))
    assert len(residual) == len(some)
    assert residual[8] == pytest.approx(utility[some[8]] - predicted[0])
    assert own / without.amplitude > variance[8]  # without widening they are the same
    assert variance[8] == pytest.approx(own[0] / without.amplitude / _wide(without))


def _wide(one: Surface) -> float:
    from fedexp.maths.shapley.sampling.standard_error import widening

    return float(widening(np.array([float(one.freedom)]))[0] ** 2)


@pytest.mark.parametrize("what", ["weights", "members"])
def test_linear_utilities_are_known(what: str):
    rng = np.random.default_rng(1)
    share, worth, members = rng.random(7) + 0.1, rng.normal(size=7), all_coalitions(7)
    weight = mixture_weights(members, share)
    utility = (weight if what == "weights" else members) @ worth
    asked = np.unique(np.concatenate([2 ** np.arange(7), 127 - 2 ** np.arange(7), rng.choice(np.arange(1, 128), 40)]))
    one = surface(7, utility, asked, share)
    assert one.additive or what == "weights"
    assert one.predict(weight[1:], members[1:].astype(float)) == pytest.approx(utility[1:], abs=1e-8)
    assert one.variance(weight[1:], members[1:].astype(float), np.eye(127)) == pytest.approx(np.zeros(127), abs=1e-11)


@pytest.mark.parametrize(("game", "low", "high"), [(unrelated, 0.8, 2), (threshold, 0.15, 2), (losing, 0, 0.02)])
def test_what_is_not_smooth_is_seen_to_be(game, low: float, high: float):
    """The variance of an unknown utility in units of that of all utilities."""
    utility, order = game(8, np.random.default_rng(3)), np.random.default_rng(0).permutation(np.arange(1, 256))
    one = surface(8, utility, order[:120])
    members = all_coalitions(8)[order[120:]]
    variance = one.variance(mixture_weights(members, np.ones(8)), members.astype(float), np.eye(135))
    assert low <= np.median(variance) / utility.var() <= high


def test_sizes_that_are_known_weigh_nothing():
    members = all_coalitions(4)[[1, 2, 4, 8, 3, 5, 7]]
    # of 6 pairs 2 are known, each weighs 2 / 3^2 + 2 / 3^2; of 4 triples 1, 3 / 3^2 + 1
    assert unknown_weight(members) == pytest.approx(np.array([0, 0, 0, 0, 2 * 4 / 9, 2 * 4 / 9, 3 * 4 / 3]))


@pytest.mark.parametrize("utility", [np.zeros(32), np.ones(32)])
def test_a_constant_has_no_error(utility: np.ndarray):
    one = surface(5, utility, np.arange(1, 20))
    members = all_coalitions(5)[20:]
    weight = mixture_weights(members, np.ones(5))
    assert one.predict(weight, members.astype(float)) == pytest.approx(utility[20:])
    assert one.variance(weight, members.astype(float), np.ones((12, 1)))[0] == pytest.approx(0, abs=1e-15)
