"""Steps of SGD by hand; one of them on all data is FedSGD."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.parts.local.sgd import SGD
from fedexp.simulation.round import run_round


def test_fedsgd_is_one_step_on_the_pooled_data(tiny: Tiny):
    world = world_of(tiny("algorithm=fedsgd", "federation=dirichlet", "federation.alpha=0.5", "local.lr=0.7"))
    state, _, _ = run_round(world.exp, world, world.beginning())
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    network.load_state_dict(world.layout.views(world.first.flat.clone()))
    F.cross_entropy(network(world.train.x), world.train.y).backward()
    gradient = torch.cat([entry.grad.reshape(-1) for entry in network.parameters() if entry.grad is not None])
    torch.testing.assert_close(state.models[0].flat, world.first.flat - 0.7 * gradient, atol=1e-6, rtol=1e-5)


def test_weight_decay_joins_the_gradient_and_momentum_is_what_remains():
    rule, w, slots = SGD(lr=0.1, momentum=0.5, weight_decay=0.25), torch.tensor([4.0]), torch.zeros(1, 1)
    seen = []
    for grad in (1.0, -3.0):  # 1 + 4 / 4 = 2, v = 2, w = 3.8; -3 + 3.8 / 4 = -2.05, v = 1 - 2.05, w = 3.905
        direction = rule.direction(torch.tensor([grad]), w, torch.zeros(1))
        rule.update(w, direction, slots, torch.tensor(1.0), None)
        seen.append((direction.item(), slots[0].item(), w.item()))
    assert seen == [pytest.approx((2.0, 2.0, 3.8)), pytest.approx((-2.05, -1.05, 3.905))]


def test_without_momentum_nothing_is_kept_of_a_step():
    assert (SGD().slots, SGD(momentum=0.9).slots) == (0, 1)


def test_a_full_batch_step_is_one_step_on_everything(tiny: Tiny):
    rule = spec.build(tiny("local=full_batch_step")).local
    assert rule == SGD(batch_size="full", shuffle=False, epochs=1, lr=0.5)
    assert rule.whole_steps(np.array([0, 1, 7, 1000])).tolist() == [0, 1, 1, 1]
