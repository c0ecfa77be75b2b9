"""A client without examples counts for nothing where a rule remembers all clients."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from worlds import Tiny, uploads_like, world_of

from fedexp.core.values import Weights

SIZES = {"with": np.array([3, 3, 0, 2]), "without": np.array([3, 3, 2])}


@pytest.mark.law("aggregator", "a client without examples counts for nothing in what is remembered of all clients")
@pytest.mark.parametrize(
    "word", ["aggregator=mifa", "aggregator=fedvarp", "algorithm=feddyn", "algorithm=agnostic", "algorithm=ca2fl"]
)
def test_it_changes_nothing(tiny: Tiny, word: str):
    world = world_of(tiny(word, "scenario.participants=2"))
    models = {}
    for name, sizes in SIZES.items():
        model, memory = world.first, {}
        for number, owner in enumerate([[0, 1], [1, len(sizes) - 1], [0, len(sizes) - 1]]):
            rows = torch.stack([torch.full((world.layout.size,), number + 1.0), torch.ones(world.layout.size)])
            uploads = replace(uploads_like(rows, owner), exact=np.array([[1.0, 0.5], [2.0, 1.0]]))
            ctx: Any = SimpleNamespace(sizes=sizes, layout=world.layout)
            moved, memory = world.exp.aggregator.combine(model, uploads, memory, ctx)
            model = Weights(moved.flat, world.layout)
        models[name] = model.flat
    torch.testing.assert_close(models["with"], models["without"], rtol=1e-6, atol=1e-6)
    assert not torch.equal(models["with"], world.first.flat)
