"""What PFNM weighs by: classes."""

from dataclasses import replace

import numpy as np
import torch
from worlds import Tiny, world_of

from fedexp.core.values import SERVER, Uploads
from fedexp.simulation import context

SKEWED = ("federation=dirichlet", "federation.alpha=0.3", "federation.min_size=4", "local=adam", "local.lr=0.05")


PFNM = ("aggregator=pfnm", "aggregator.s=0.1", "aggregator.gamma=5", "model.hidden=[5]", *SKEWED)


def test_the_servers_own_row_counts_for_all_classes_alike(tiny: Tiny):
    world = world_of(tiny(*PFNM))
    clients = np.array([SERVER, 0, 4])
    uploads = Uploads(clients, clients * 0, np.array([20, 9, 9]), np.ones(3), torch.zeros(3, 1), *np.ones((2, 3)))
    classes = len(world.class_names)
    counts = np.vstack([np.full(classes, 20 / classes), context.at(world, 1).class_counts(clients[1:])])
    np.testing.assert_allclose(
        world.exp.aggregator.class_shares(uploads, context.at(world, 1)), counts / counts.sum(axis=0)
    )
    alike = replace(world.exp.aggregator, weighting="uniform").class_shares(uploads, context.at(world, 1))
    np.testing.assert_allclose(alike, 1 / 3)
