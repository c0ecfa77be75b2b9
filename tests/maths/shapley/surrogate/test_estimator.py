"""Values from the surrogate: exact where all is known, honest errors, many players, equal clients, batches."""

from functools import cache

import numpy as np
import pytest
from games import FAMILIES, evaluating, losing

from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.game.exact import exact, exact_weights
from fedexp.maths.shapley.surrogate.estimator import BATCHES
from fedexp.maths.shapley.surrogate.smooth import mixture_weights

GAMES = 40


def estimate(utility: np.ndarray, seed: int, share: np.ndarray | None = None, **keys) -> Estimate:
    players, rng = len(utility).bit_length() - 1, np.random.default_rng(seed)
    return Shapley(method="surrogate", **keys).estimate(players, evaluating(utility), rng, share=share)


@cache
def estimates(family: str) -> list[tuple[Estimate, np.ndarray]]:
    games = [FAMILIES[family](8, np.random.default_rng([seed, 1])) for seed in range(GAMES)]
    return [(estimate(game, seed, stop="budget", coalitions=96), exact(game)) for seed, game in enumerate(games)]


@pytest.mark.parametrize("family", ["unrelated", "threshold", "losing"])
def test_the_95_percent_intervals_hold_the_exact_value(family: str):
    told = [(found.values - true, found.errors) for found, true in estimates(family)]
    inside = [np.abs(wrong) <= 1.96 * errors for wrong, errors in told if errors is not None]
    assert len(inside) == len(told)
    assert 0.90 <= np.mean(inside) <= 0.99


def test_an_additive_game_is_known_without_error():
    for found, true in estimates("additive"):
        assert found.values == pytest.approx(true)
        assert found.errors == pytest.approx(np.zeros(8), abs=1e-6)


def test_a_smooth_game_takes_few_coalitions():
    error = {}
    for method in ("surrogate", "gtg"):
        way = Shapley(method=method, stop="budget", coalitions=96)
        error[method] = np.mean(
            [
                np.abs(way.estimate(8, evaluating(game), np.random.default_rng(0)).values - exact(game)).max()
                for game in (losing(8, np.random.default_rng([seed, 1])) for seed in range(10))
            ]
        )
    assert error["surrogate"] < 0.25 * error["gtg"]


def test_the_weights_of_the_exact_formula():
    utility = np.random.default_rng(0).normal(size=32)
    assert exact_weights(5).T @ utility == pytest.approx(exact(utility))
    assert exact_weights(2).tolist() == [[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]]


def smooth(share: np.ndarray, seed: int = 0):
    """Minus a loss of the averaged model in three dimensions."""
    models = np.random.default_rng(seed).normal(0.5, 1, size=(len(share), 3))

    def evaluate(members: np.ndarray) -> np.ndarray:
        loss = np.log1p((((mixture_weights(members, share) @ models) - 1) ** 2).sum(axis=1))
        return np.where(members.any(axis=1), -loss, -3.0)

    return evaluate


@pytest.mark.parametrize("players", [50, 100])
def test_many_players_in_bounded_time(players: int):
    share, sizes = np.linspace(1, 2, players), []
    evaluate = smooth(share)

    def counting(members: np.ndarray) -> np.ndarray:
        sizes.append(len(members))
        return evaluate(members)

    found = Shapley(coalitions=4 * players).estimate(players, counting, np.random.default_rng(0), share=share)
    assert found.method == "surrogate"
    assert found.coalitions == sum(sizes) <= 4 * players
    assert len(sizes) <= 1 + len(BATCHES["values"])
    assert found.values.sum() == pytest.approx(
        np.subtract(*evaluate(np.array([[1], [0]]) * np.ones((2, players), bool)))
    )
    assert found.relative_error is not None
    assert found.relative_error < 0.1


def test_equal_clients_share_equally():
    share = np.array([1.0, 1, 1, 2, 2, 3, 3, 0.5])
    models = np.array([0.0, 0, 0, 1, 1, -1, 2, 3])
    members = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(bool)
    utility = np.where(members.any(axis=1), -((mixture_weights(members, share) @ models - 1) ** 2), -4.0)
    found = estimate(utility, 0, share)
    assert found.errors is not None
    assert np.abs(found.values - exact(utility)).max() <= 0.02 * np.ptp(exact(utility))
    assert found.values[3] == pytest.approx(found.values[4], abs=4 * found.errors[3] + 1e-6)


def test_a_client_that_counts_nothing_is_nobody():
    share = np.array([1.0, 1, 1, 1, 1, 1, 1, 0])
    members = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(bool)
    weight = mixture_weights(members, share)
    utility = np.where(weight.any(axis=1), -((weight @ np.arange(8) - 2) ** 2), -30.0)
    found = estimate(utility, 0, share)
    assert found.errors is not None
    assert abs(found.values[7]) <= 4 * found.errors[7] + 1e-6


def test_small_errors_spare_the_later_batches():
    share, hard = np.ones(10), FAMILIES["unrelated"](10, np.random.default_rng(0))
    easy = smooth(share)((np.arange(1024)[:, None] >> np.arange(10) & 1).astype(bool))
    assert (estimate(easy, 0).coalitions, estimate(easy, 0).converged) == (70, True)
    assert (estimate(hard, 0).coalitions, estimate(hard, 0).converged) == (120, False)
    assert (estimate(hard, 0).relative_error or 0) > 0.05
