"""Gradients of single examples outside of training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from worlds import world_of

from fedexp.simulation import context
from fedexp.simulation.world import World
from fedexp.training.per_example import gradients

Tiny = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.usefixtures("_narrow")
PRIVATE = ("privacy=dp_sgd", "privacy.clip=0.3", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
MODELS = {
    "mlp": (*PRIVATE,),
    "without privacy": (),
    "simple_cnn": ("model=simple_cnn", "dataset.shape=[1,8,8]", *PRIVATE),
    "batch norm": ("model=complex_cnn", "dataset.shape=[1,8,8]"),
}


def one_by_one(world: World, index: np.ndarray) -> torch.Tensor:
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).eval()
    network.load_state_dict(world.layout.views(world.first.flat.clone()), strict=False)
    rows, clip = [], world.exp.privacy.example_clip or float("inf")
    for number in index.tolist():
        loss = F.cross_entropy(network(world.train.inputs(slice(number, number + 1))), world.train.y[[number]])
        row = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(network.parameters()))])
        rows.append(row * min(1.0, clip / float(row.norm())))
    return torch.stack(rows)


@pytest.mark.parametrize("model", MODELS)
def test_each_and_their_sum(tiny: Tiny, model: str, monkeypatch: pytest.MonkeyPatch):
    world = world_of(tiny(*MODELS[model]))
    index, slow = np.array([3, 0, 17, 5]), one_by_one(world, np.array([3, 0, 17, 5]))
    ctx = context.make_context(world, 1)
    torch.testing.assert_close(ctx.audit.gradients(index), slow, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(ctx.audit.gradient_sum(index), slow.sum(dim=0), atol=1e-5, rtol=1e-4)
    monkeypatch.setattr(gradients, "FLOATS", 1)  # an example at a time
    torch.testing.assert_close(ctx.audit.gradients(index), slow, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(ctx.audit.gradient_sum(index), slow.sum(dim=0), atol=1e-5, rtol=1e-4)


def test_nothing_of_nothing(tiny: Tiny):
    world = world_of(tiny(*PRIVATE))
    nobody = np.zeros(0, np.int64)
    assert context.make_context(world, 1).audit.gradients(nobody).shape == (0, world.layout.parameters)
    assert not context.make_context(world, 1).audit.gradient_sum(nobody).any()
