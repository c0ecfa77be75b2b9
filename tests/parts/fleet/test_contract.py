"""What every fleet must keep, found from conf/."""

import numpy as np
import pytest
import torch
from composing import options
from worlds import Tiny, uploads_like, world_of

from fedexp.simulation import context


@pytest.mark.parametrize("option", options("fleet"))
def test_every_fleet_delivers_and_survives_nobody(tiny: Tiny, option: str):
    world = world_of(tiny(f"fleet={option}"))
    uploads = uploads_like(torch.zeros(3, world.layout.size))
    plan = context.make_context(world, 1).plan(uploads.owner)
    arrived, seconds, _ = world.exp.fleet.deliver(uploads, plan, {}, context.make_context(world, 1))
    assert set(arrived.owner) <= set(uploads.owner)
    assert (seconds > 0) == world.exp.fleet.simulates
    nobody, _, _ = world.exp.fleet.deliver(uploads.where(np.zeros(3, bool)), plan, {}, context.make_context(world, 1))
    assert len(nobody.owner) == 0
