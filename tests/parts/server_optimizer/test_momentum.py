"""Three rounds by hand on one trainable entry and one buffer."""

import pytest
import torch

from fedexp.core.values import Layout, Weights
from fedexp.parts.server_optimizer.adam import Adam
from fedexp.parts.server_optimizer.contract import ServerOptimizer
from fedexp.parts.server_optimizer.momentum import Momentum
from fedexp.parts.server_optimizer.yogi import Yogi

LAYOUT = Layout(("w", "running"), ((1,), (1,)), 1)


def path(rule: ServerOptimizer, asks: list[float]) -> list[float]:
    """The model after each round in which the clients ask to move by so much."""
    weights, memory, seen = Weights(torch.tensor([0.0, 5.0]), LAYOUT), {}, []
    for ask in asks:
        proposal = Weights(weights.flat + torch.tensor([ask, 1.0]), LAYOUT)
        weights, memory = rule.step(weights, proposal, memory)
        seen.append(weights.flat[0].item())
    assert weights.flat[1].item() == 5.0 + len(asks)
    return seen


def test_replace_takes_the_proposal():
    assert path(ServerOptimizer(), [1, -2, 4]) == [1, -1, 3]


def test_momentum():
    # v = 1, 0.5 - 2 = -1.5, -0.75 + 4 = 3.25; steps of 0.1 v
    assert path(Momentum(lr=0.1, beta=0.5), [1, -2, 4]) == pytest.approx([0.1, -0.05, 0.275])


def test_adam():
    # m = .5, -.75, 1.625; v = .5*1+.5*1 = 1, .5*1+.5*4 = 2.5, .5*2.5+.5*16 = 9.25; steps .1 m / (sqrt(v) + 1)
    steps = [0.05 / 2, -0.075 / (2.5**0.5 + 1), 0.1625 / (9.25**0.5 + 1)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(Adam(lr=0.1, beta1=0.5, beta2=0.5, tau=1.0), [1, -2, 4]) == pytest.approx(expected)


def test_yogi():
    # v = 1 - .5*1*sign(0) = 1, then 1 - .5*4*sign(1-4) = 3, then 3 - .5*16*sign(3-16) = 11
    steps = [0.05 / 2, -0.075 / (3**0.5 + 1), 0.1625 / (11**0.5 + 1)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(Yogi(lr=0.1, beta1=0.5, beta2=0.5, tau=1.0), [1, -2, 4]) == pytest.approx(expected)
