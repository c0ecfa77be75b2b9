"""Steps of SGD by hand; one of them on all data is FedSGD."""

import torch
from torch.nn import functional as F
from worlds import Tiny, world_of

from fedexp.simulation.round import run_round


def test_fedsgd_is_one_step_on_the_pooled_data(tiny: Tiny):
    world = world_of(tiny("algorithm=fedsgd", "federation=dirichlet", "federation.alpha=0.5", "local.lr=0.7"))
    state, _, _ = run_round(world.exp, world, world.beginning())
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    network.load_state_dict(world.layout.views(world.first.flat.clone()))
    F.cross_entropy(network(world.train.x), world.train.y).backward()
    gradient = torch.cat([entry.grad.reshape(-1) for entry in network.parameters() if entry.grad is not None])
    torch.testing.assert_close(state.models[0].flat, world.first.flat - 0.7 * gradient, atol=1e-6, rtol=1e-5)
