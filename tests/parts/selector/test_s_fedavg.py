from dataclasses import replace

import numpy as np
import pytest
import torch
from stages import Stage, play

from fedexp.core.errors import ConfigError
from fedexp.maths.shapley.estimate import Shapley
from fedexp.parts.selector.greedyfed import GreedyFed
from fedexp.parts.selector.s_fedavg import SFedAvg, inverse_softmax

WORTH = np.array([50.0, 10.0, 40.0, 0.0])


@pytest.fixture
def game() -> Stage:
    return Stage(np.array([10, 20, 30, 40]), utility=lambda coalition: float(WORTH[list(coalition)].sum()))


@pytest.mark.law(
    "selector=s_fedavg", "relevance becomes alpha times itself plus beta times the mean Shapley value so far"
)
def test_three_rounds_by_hand(game: Stage):
    selector = SFedAvg(count=4, alpha=0.5, beta=0.1, shapley=Shapley())
    owners, memories = play(selector, [game] * 3)
    assert owners == [[0, 1, 2, 3]] * 3
    # 1/4 at first; then halved, and a tenth of the mean Shapley value added
    assert memories[0]["relevance"].tolist() == pytest.approx([5.125, 1.125, 4.125, 0.125])
    assert memories[1]["relevance"].tolist() == pytest.approx([7.5625, 1.5625, 6.0625, 0.0625])
    assert memories[2]["relevance"].tolist() == pytest.approx([8.78125, 1.78125, 7.03125, 0.03125])


@pytest.mark.law(
    "selector=s_fedavg", "clients are drawn by the soft-max of their relevance, and weigh n_k over that share"
)
def test_draws_follow_the_softmax_and_weights_undo_it(game: Stage):
    memory = {"relevance": torch.from_numpy(np.log([1.0, 2.0, 3.0, 4.0]))}
    seen = np.zeros(4)
    for seed in range(4000):
        plan, _ = SFedAvg(count=1, shapley=Shapley()).choose(memory, replace(game, seed=seed).ctx)
        seen[plan.owner[0]] += 1
    assert seen / 4000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.025)
    plan, _ = SFedAvg(count=4, shapley=Shapley()).choose(memory, game.ctx)
    assert plan.importance == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])  # as 1 / p: 10, 5, 10/3, 10/4


def test_three_rounds_of_two_by_hand(game: Stage):
    selector = SFedAvg(count=2, alpha=0.5, beta=10.0, shapley=Shapley())
    owners, memories = play(selector, [game] * 3)
    # whoever comes in first gains at least 100 (client 3, worth nothing, falls to 1/8), which decides all later draws
    first = sorted(set(owners[0]) - {3}, key=lambda client: -WORTH[client])
    assert set(first) <= set(owners[1])
    assert set(first) <= set(owners[2])
    relevance = memories[0]["relevance"].tolist()
    assert [relevance[client] for client in owners[0]] == pytest.approx([0.125 + 10 * WORTH[k] for k in owners[0]])
    assert [relevance[client] for client in range(4) if client not in owners[0]] == [0.25, 0.25]


@pytest.mark.law("selector=s_fedavg", "a client that did not take part keeps its relevance")
def test_who_did_not_take_part_keeps_its_relevance(game: Stage):
    selector = SFedAvg(count=2, shapley=Shapley())
    plan, memory = selector.choose({}, game.ctx)
    after = selector.observe(game.uploads(plan), memory, game.ctx)["relevance"].numpy()
    absent = np.setdiff1d(np.arange(4), plan.owner)
    assert after[absent].tolist() == [0.25, 0.25]
    assert after[plan.owner] == pytest.approx(0.75 / 4 + 0.25 * WORTH[plan.owner])


def test_it_ranks_nobody_so_no_ranking_can_stop_it():
    with pytest.raises(ConfigError, match=r"SFedAvg\.shapley\.stop must be values or budget, got ranking"):
        SFedAvg(count=2, shapley=Shapley(stop="ranking"))
    GreedyFed(count=2, shapley=Shapley(stop="ranking"))


def test_a_huge_spread_of_relevance_does_not_overflow():
    assert inverse_softmax(np.array([1e6, 0.0, -1.0])).tolist() == pytest.approx([0.0, np.exp(-1), 1.0])
    assert inverse_softmax(np.zeros(0)).tolist() == []
