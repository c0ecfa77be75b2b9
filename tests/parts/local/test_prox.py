"""The proximal pull, by hand and in a round."""

import torch
from worlds import Tiny, world_of

from fedexp.simulation.round import run_round


def test_fedprox_with_mu_zero_is_fedavg_and_a_strong_pull_stays_near(tiny: Tiny):
    rules = (("algorithm=fedavg",), ("algorithm=fedprox", "local.mu=0"), ("algorithm=fedprox", "local.mu=5"))
    worlds = [world_of(tiny(*words, "local.epochs=8")) for words in rules]
    moved = [run_round(world.exp, world, world.beginning())[0].models[0].flat for world in worlds]
    assert torch.equal(moved[0], moved[1])
    assert (moved[2] - worlds[0].first.flat).norm() < 0.8 * (moved[0] - worlds[0].first.flat).norm()
