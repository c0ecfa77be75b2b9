"""What PFNM weighs by: classes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import Tiny, uploads_like, world_of

from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Uploads
from fedexp.parts.aggregator.pfnm import PFNM, per_layer
from fedexp.simulation import context

SKEWED = ("federation=dirichlet", "federation.alpha=0.3", "federation.min_size=4", "local=adam", "local.lr=0.05")


WORDS = ("aggregator=pfnm", "aggregator.s=0.1", "aggregator.gamma=5", "model.hidden=[5]", *SKEWED)


def test_the_servers_own_row_counts_for_all_classes_alike(tiny: Tiny):
    world = world_of(tiny(*WORDS))
    rule = world.exp.aggregator
    assert isinstance(rule, PFNM)
    clients = np.array([SERVER, 0, 4])
    uploads = Uploads(clients, clients * 0, np.array([20, 9, 9]), np.ones(3), torch.zeros(3, 1), np.ones(3), np.ones(3))
    classes = len(world.class_names)
    counts = np.vstack(
        [np.full(classes, 20 / classes), context.make_context(world, 1).clients_data.class_counts(clients[1:])]
    )
    np.testing.assert_allclose(rule.class_shares(uploads, context.make_context(world, 1)), counts / counts.sum(axis=0))
    alike = replace(rule, weighting="uniform").class_shares(uploads, context.make_context(world, 1))
    np.testing.assert_allclose(alike, 1 / 3)


def test_a_class_that_one_client_has_alone_is_its_own(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    """Of class 0 the first has 3 and the second 1; class 1 is the second's; of class 2 nobody has any."""
    ctx = context.make_context(world_of(tiny()), 1)
    monkeypatch.setattr(
        type(ctx.clients_data), "class_counts", lambda _, owner: np.array([[3, 0, 0], [1, 4, 0]])[owner]
    )
    shares = PFNM().class_shares(uploads_like(torch.zeros(2, 1), examples=np.array([3, 5])), ctx)
    assert shares.tolist() == [[0.75, 0, 0], [0.25, 1, 0]]


def test_one_number_is_every_layers_and_a_list_has_one_for_each():
    assert per_layer(0.5, 3) == (0.5, 0.5, 0.5)
    assert per_layer((0.1, 0.2), 2) == (0.1, 0.2)
    PFNM(s=(0.1, 0.2)).refuse_depth(2)
    with pytest.raises(ConfigError, match=r"aggregator\.s must be .* there are 3 and it is \[0\.1, 0\.2\]"):
        PFNM(s=(0.1, 0.2)).refuse_depth(3)
