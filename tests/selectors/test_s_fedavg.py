from dataclasses import replace

import numpy as np
import pytest
import torch
from stages import Stage, play

from fedexp.selectors.s_fedavg import SFedAvg, softmax
from fedexp.shapley.estimate import Shapley

WORTH = np.array([50.0, 10.0, 40.0, 0.0])


@pytest.fixture
def game() -> Stage:
    return Stage(np.array([10, 20, 30, 40]), utility=lambda coalition: float(WORTH[list(coalition)].sum()))


def test_three_rounds_by_hand(game: Stage):
    selector = SFedAvg(count=4, alpha=0.5, beta=0.1, shapley=Shapley())
    owners, memories = play(selector, [game] * 3)
    assert owners == [[0, 1, 2, 3]] * 3
    # 1/4 at first; then halved, and a tenth of the mean Shapley value added
    assert memories[0]["relevance"].tolist() == pytest.approx([5.125, 1.125, 4.125, 0.125])
    assert memories[1]["relevance"].tolist() == pytest.approx([7.5625, 1.5625, 6.0625, 0.0625])
    assert memories[2]["relevance"].tolist() == pytest.approx([8.78125, 1.78125, 7.03125, 0.03125])


def test_draws_follow_the_softmax_and_weights_undo_it(game: Stage):
    selector = SFedAvg(count=1, shapley=Shapley())
    relevance = np.log([1.0, 2.0, 3.0, 4.0])
    memory = {"relevance": torch.from_numpy(relevance)}
    seen = np.zeros(4)
    for seed in range(4000):
        plan, _ = selector.choose(memory, replace(game, seed=seed))
        assert plan.importance is not None
        assert plan.importance[0] == pytest.approx(10 / (plan.owner[0] + 1))  # 1 / p
        seen[plan.owner[0]] += 1
    assert seen / 4000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.025)


def test_who_did_not_take_part_keeps_its_relevance(game: Stage):
    selector = SFedAvg(count=2, shapley=Shapley())
    plan, memory = selector.choose({}, game)
    after = selector.observe(game.uploads(plan), memory, game)["relevance"].numpy()
    absent = np.setdiff1d(np.arange(4), plan.owner)
    assert after[absent].tolist() == [0.25, 0.25]
    assert after[plan.owner] == pytest.approx(0.75 / 4 + 0.25 * WORTH[plan.owner])


def test_a_huge_relevance_does_not_overflow():
    assert softmax(np.array([1e6, 0.0])).tolist() == [1.0, 0.0]
