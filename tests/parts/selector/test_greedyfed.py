"""GreedyFed by hand: everybody once, then the largest mean Shapley values; UCB and S-FedAvg on the same game."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from games import Method
from stages import Stage, play

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.maths.shapley.estimate import Shapley
from fedexp.parts.selector.greedyfed import GreedyFed, opening_rounds
from fedexp.parts.selector.s_fedavg import SFedAvg
from fedexp.parts.selector.shapley_selector import coalition_mix, round_values, running_mean
from fedexp.parts.selector.ucb import UCB

WORTH = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])


def additive(coalition: frozenset[int]) -> float:
    """Every member adds its own worth, so the Shapley values are the worths."""
    return float(WORTH[list(coalition)].sum())


@pytest.fixture
def game(equal_sizes: Stage) -> Stage:
    return replace(equal_sizes, utility=additive)


def test_opening_rounds_by_hand():
    assert [opening_rounds(6, count) for count in (1, 2, 4, 6, 9)] == [6, 3, 2, 1, 1]


@pytest.mark.law("selector=greedyfed", "everybody is asked once, then those with the largest mean Shapley values")
def test_everybody_once_then_the_best_by_hand(game: Stage):
    owners, memories = play(GreedyFed(count=2, shapley=Shapley()), [game] * 5)
    assert sorted(client for owner in owners[:3] for client in owner) == [0, 1, 2, 3, 4, 5]
    assert memories[2]["mean"].tolist() == pytest.approx(WORTH.tolist())
    assert memories[2]["count"].tolist() == [1] * 6
    assert owners[3:] == [[0, 2], [0, 2]]
    assert memories[4]["count"].tolist() == [3, 1, 3, 1, 1, 1]
    assert memories[4]["columns"]["coalitions"] == 4


def test_the_mean_runs_over_a_clients_own_rounds(game: Stage):
    worse = replace(game, utility=lambda coalition: -additive(coalition))
    owners, memories = play(GreedyFed(count=2, shapley=Shapley()), [game] * 3 + [worse] * 2)
    # 0 and 2 fall from 5 and 4 to means of 0, so 3 and 4 (2 and 3) come next
    assert owners[3:] == [[0, 2], [3, 4]]
    assert memories[3]["mean"].tolist() == pytest.approx([0, 1, 0, 2, 3, 0])
    assert memories[4]["mean"].tolist() == pytest.approx([0, 1, 0, 0, 0, 0])


def test_the_opening_order_is_random_and_its_last_block_is_completed(game: Stage):
    orders = set()
    for seed in range(8):
        owners, _ = play(GreedyFed(count=4, shapley=Shapley()), [replace(game, seed=seed)] * 2)
        assert set(owners[0]) | set(owners[1]) == set(range(6))
        assert len(set(owners[1])) == 4
        orders.add(tuple(owners[0]))
    assert len(orders) > 3


def test_the_published_opening_by_hand(game: Stage):
    selector = GreedyFed(count=4, opening="published", shapley=Shapley())
    owners, _ = play(selector, [game] * 3)
    assert owners[0] == [0, 1, 2, 3]
    assert set(owners[1]) > {4, 5}  # floor(6 / 4) = 1 block, and the leftover completed
    assert owners[2] == [0, 2, 3, 4]
    owners, _ = play(GreedyFed(count=3, opening="published", shapley=Shapley()), [game] * 4)
    assert owners[:2] == [[0, 1, 2], [3, 4, 5]]
    assert len(set(owners[2])) == 3  # one more round, all random
    assert owners[3] == [0, 2, 4]


def test_whoever_lost_its_first_upload_comes_again(game: Stage):
    selector, memory = GreedyFed(count=3, shapley=Shapley()), {}
    for number in (1, 2):
        ctx = game.at(number)
        plan, memory = selector.choose(memory, ctx.ctx)
        uploads = ctx.uploads(plan)
        memory = selector.observe(uploads.where(uploads.owner != 5), memory, ctx.ctx)
    plan, _ = selector.choose(memory, game.at(3).ctx)
    assert plan.owner.tolist() == [0, 2, 5]  # 5 is worth nothing, but nobody knows


@pytest.mark.law("selector=greedyfed", "ties go to the clients with the smallest numbers")
def test_ties_go_to_the_smallest_ids(equal_sizes: Stage):
    nothing = replace(equal_sizes, utility=lambda _: 0.0)
    owners, _ = play(GreedyFed(count=2, shapley=Shapley()), [nothing] * 4)
    assert owners[3] == [0, 1]


def test_running_mean_by_hand():
    mean, count = running_mean({}, 3, np.array([2]), np.array([6.0]))
    memory = {"mean": torch.from_numpy(mean), "count": torch.from_numpy(count)}
    mean, count = running_mean(memory, 3, np.array([0, 2]), np.array([1.0, 3.0]))
    assert mean.tolist() == [1.0, 0.0, 4.5]
    assert count.tolist() == [1, 0, 2]


class TestRoundValues:
    @pytest.mark.law("selector=greedyfed", "where every client adds its own worth, its Shapley value is that worth")
    @pytest.mark.parametrize("owner", [[1, 3, 5], [5, 1], [4], [0, 1, 2, 3, 4, 5]])
    @pytest.mark.parametrize("method", ["exact", "gtg"])
    def test_credit_goes_to_the_right_client_whatever_the_numbers(self, game: Stage, owner: list[int], method: Method):
        uploads = game.uploads(game.plan(np.array(owner)))
        values, _, columns = round_values(Shapley(method=method, truncation=0), uploads, game.ctx)
        assert values == pytest.approx(WORTH[owner])
        assert columns["method"] == method

    def test_coalitions_are_averaged_with_the_aggregators_weights(self):
        members = np.array([[False, False], [True, False], [True, True]])
        mix = coalition_mix(members, np.array([0.75, 0.25]))
        assert mix.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.75, 0.25]]
        assert coalition_mix(np.array([[False, True]]), np.array([1.0, 0.0])).tolist() == [[1.0, 0.0, 0.0]]

    @pytest.mark.law(
        "selector=greedyfed", "an update that is not finite is worth nothing and changes nobody else's value"
    )
    def test_an_update_that_is_not_finite_contributed_nothing(self, game: Stage):
        uploads = game.uploads(game.plan(np.array([0, 2, 4])))
        delta = uploads.delta.clone()
        delta[1, 3] = torch.nan
        values, _, columns = round_values(Shapley(), replace(uploads, delta=delta), game.ctx)
        assert values == pytest.approx([5.0, 0.0, 3.0])
        assert columns["coalitions"] == 4


@pytest.mark.parametrize(("method", "most"), [("exact", 20), ("surrogate", 250), ("auto", 250)])
def test_values_of_too_many_are_refused_before_anything_is_loaded(tiny, method: str, most: int):
    with pytest.raises(ConfigError, match=rf"selector\.count must be at most {most} with shapley\.method={method}"):
        spec.build(tiny("selector=greedyfed", f"scenario.participants={most + 1}", f"selector.shapley.method={method}"))


def test_who_is_away_is_asked_later_and_first_by_hand(game: Stage):
    """In the order 0, 1, ... of the published code; client 1 is away in its turn, the best two in the last round."""
    rule = GreedyFed(count=2, opening="published", shapley=Shapley())
    away = [replace(game, busy=np.array(busy, np.int64)) for busy in ([1], [], [], [1], [0, 2])]
    owners, _ = play(rule, away)
    assert owners[:3] == [[0], [2, 3], [4, 5]]
    assert 1 not in owners[0]
    assert owners[4] == [1, 4]  # the one without a mean, then the largest mean of those that are there


def test_bounds_and_relevance_leave_out_who_is_away(game: Stage):
    for kind in (UCB, SFedAvg):
        stages = [
            replace(game, busy=np.array(busy, np.int64)) for busy in ([0, 1, 2, 3], [0], [], [5], [0, 1, 3, 4, 5])
        ]
        owners, _ = play(kind(count=2, shapley=Shapley()), stages)
        assert [len(owner) for owner in owners] == [2, 2, 2, 2, 1]
        assert owners[0] == [4, 5]
        assert owners[4] == [2]
