"""The proximal pull, by hand and in a round."""

import pytest
import torch
from worlds import Tiny, world_of

from fedexp.parts.local.prox import Prox
from fedexp.simulation.round import run_round


@pytest.mark.law("algorithm=fedprox", "mu = 0 is FedAvg, to the byte")
@pytest.mark.law("algorithm=fedprox", "a strong pull keeps the step below 0.8 of FedAvg's length")
def test_fedprox_with_mu_zero_is_fedavg_and_a_strong_pull_stays_near(tiny: Tiny):
    rules = (("algorithm=fedavg",), ("algorithm=fedprox", "local.mu=0"), ("algorithm=fedprox", "local.mu=5"))
    worlds = [world_of(tiny(*words, "local.epochs=8")) for words in rules]
    moved = [run_round(world.exp, world, world.initial_state())[0].models[0].flat for world in worlds]
    assert torch.equal(moved[0], moved[1])
    assert (moved[2] - worlds[0].first.flat).norm() < 0.8 * (moved[0] - worlds[0].first.flat).norm()


def test_the_pull_by_hand():
    grad, w, anchor = (torch.tensor([value]) for value in (1.0, 3.0, -1.0))
    assert Prox(mu=0.5).direction(grad, w, anchor).item() == 1 + 0.5 * (3 + 1)
    assert Prox(mu=0.5, weight_decay=2.0).direction(grad, w, anchor).item() == 1 + 2 * 3 + 0.5 * (3 + 1)


@pytest.mark.law(
    "local=prox", "on a quadratic the steps end at the minimum of the cost plus mu / 2 times the squared distance"
)
@pytest.mark.parametrize(("mu", "end"), [(0.0, 6.0), (1.0, 3.0), (2.0, 2.0)])
def test_steps_end_at_the_proximal_minimum(mu: float, end: float):
    """Of (w - 6)^2 / 2 + mu w^2 / 2, whose slope is w - 6 + mu w."""
    rule, w, anchor = Prox(mu=mu, lr=0.1), torch.tensor([-1.0]), torch.zeros(1)
    for _ in range(200):
        rule.update(w, rule.direction(w - 6, w, anchor), torch.zeros(0, 1), torch.tensor(1.0), None)
    assert w.item() == pytest.approx(end, abs=1e-4)
