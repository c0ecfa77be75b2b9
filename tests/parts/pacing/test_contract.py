"""What every pacing must keep, found from conf/."""

from itertools import islice

import numpy as np
import pytest
import torch
from composing import options
from worlds import Tiny, rounds_with_rows, uploads_like, world_of

from fedexp.parts.pacing.contract import Pacing
from fedexp.simulation import context

FLEET = ("fleet=simulated", "fleet.speed_low=5", "fleet.link=own")


@pytest.mark.law("pacing=synchronous", "a round waits for all that it asked, and updates count as they were sent")
def test_the_base_waits_for_all_that_it_asks(tiny: Tiny):
    world = world_of(tiny())
    ctx, uploads = context.make_context(world, 3), uploads_like(torch.ones(2, 4))
    plan = ctx.plan(np.array([4, 1]))
    arrivals, memory = Pacing().due(plan, world.first, {}, ctx)
    assert (arrivals.plan, arrivals.begun.tolist(), arrivals.seconds, memory) == (plan, [3, 3], None, {})
    assert Pacing().discount(uploads, {}, ctx) == (uploads, {})
    busy, capacity = Pacing().availability({}, 9)
    assert (busy.tolist(), capacity) == ([], None)


@pytest.mark.law("pacing", "the clock never goes back, and nobody counts twice in a step")
@pytest.mark.parametrize("option", options("pacing"))
def test_every_pacing_moves_the_clock_and_asks_nobody_twice(tiny: Tiny, option: str):
    words = ("scenario.participants=3", "rounds=20", f"pacing={option}", *FLEET)
    short = ("pacing.period_s=2",) if option == "periodic" else ()
    before_s, steps = 0.0, 0
    for state, row, sent in islice(rounds_with_rows(world_of(tiny(*words, *short))), 6):
        assert row["sim_s"] >= before_s
        assert len(set(sent.owner.tolist())) == len(sent.owner)
        assert row["participants"] == len(sent.owner)
        before_s, steps = state.sim_s, steps + 1
    assert steps == 6
