"""Rows cut to a norm, by hand."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fedexp.core import part as spec
from fedexp.core.values import Uploads
from fedexp.parts.privacy.clipping import clipped
from fedexp.simulation.world import World, build_world
from fedexp.training.workers import Crew

Tiny = Callable[..., dict[str, Any]]


def world_of(config: dict[str, Any]) -> World:
    return build_world(spec.build(config), None, Crew())


def uploads(delta: torch.Tensor, examples: np.ndarray | None = None) -> Uploads:
    owner = np.arange(len(delta))
    ones = np.ones(len(delta))
    examples = np.full(len(delta), 20) if examples is None else examples
    return Uploads(owner, owner * 0, examples, ones, delta, ones, ones)


def test_clipping_by_hand():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(clipped(rows, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(clipped(rows, math.inf), rows)
