"""What the Shapley selectors record of how sure they are, and what they remember of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from stages import Stage, play

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.maths.shapley.estimate import Shapley
from fedexp.parts.selector.greedyfed import GreedyFed
from fedexp.parts.selector.s_fedavg import SFedAvg
from fedexp.parts.selector.shapley_selector import variances
from fedexp.parts.selector.ucb import UCB

WORTH = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
ROUGH = Shapley(method="gtg", truncation=0, truncation_between=0, permutations_per_client=2, stop="budget")


def rugged(coalition: frozenset[int]) -> float:
    """Worths, and something that only chance decides."""
    return float(WORTH[list(coalition)].sum()) + 3 * float(np.sin(sum(10.0**client for client in coalition)))


@pytest.fixture
def game(equal_sizes: Stage) -> Stage:
    return replace(equal_sizes, utility=rugged)


def columns(selector, game: Stage, rounds: int) -> list[dict]:
    return [memory["columns"] for memory in play(selector, [game] * rounds)[1]]


@pytest.mark.parametrize("kind", [GreedyFed, UCB])
def test_exact_values_are_sure_once_everybody_has_one(kind, game: Stage):
    told = columns(kind(count=3, shapley=Shapley()), game, 3)
    assert [one["sure"] for one in told] == [None, 1.0, 1.0]
    assert [one["standard_error"] for one in told] == [0.0] * 3


def test_rough_values_are_not_sure(game: Stage):
    told = columns(GreedyFed(count=4, shapley=ROUGH), game, 3)
    assert told[0]["standard_error"] > 0
    assert 0 <= told[2]["sure"] < 1


def test_s_fedavg_draws_and_has_no_ranking_to_be_sure_of(game: Stage):
    assert [one["sure"] for one in columns(SFedAvg(count=6, shapley=Shapley()), game, 2)] == [None, None]


def test_the_variance_of_a_running_mean_by_hand():
    owner, count = np.array([1]), np.array([0, 1, 0])
    first = variances({}, count, owner, np.array([3.0]))
    assert first.tolist() == [0.0, 9.0, 0.0]
    memory = {"variance": torch.from_numpy(first)}
    assert variances(memory, count * 2, owner, np.array([4.0])).tolist() == [0.0, 6.25, 0.0]
    assert first.tolist() == [0.0, 9.0, 0.0]


def test_a_bound_that_cannot_tell_the_values_is_refused(tiny):
    with pytest.raises(ConfigError, match=r"selector\.shapley\.coalitions must be at least 22 for 10 participants"):
        spec.build(tiny("selector=greedyfed", "scenario.participants=10", "selector.shapley.coalitions=21"))
