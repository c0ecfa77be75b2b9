"""What every server optimizer must keep, found from conf/."""

from dataclasses import replace

import pytest
import torch
from composing import options
from server_steps import path
from worlds import Tiny, world_of

from fedexp.core.values import Memory, Weights
from fedexp.parts.server_optimizer.contract import ServerOptimizer
from fedexp.simulation.round import run_round


@pytest.mark.parametrize("option", options("server_optimizer"))
class TestServerOptimizer:
    @pytest.mark.law("server_optimizer", "in the first round a proposal to stay moves nothing")
    def test_no_proposal_no_move(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"server_optimizer={option}"))
        moved, _ = world.exp.server_optimizer.step(world.first, world.first, {})
        torch.testing.assert_close(moved.flat, world.first.flat)

    @pytest.mark.law("server_optimizer", "statistics take the proposal's values, to the byte")
    @pytest.mark.usefixtures("_narrow")
    def test_buffers_take_the_proposals_values(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"server_optimizer={option}", "model=complex_cnn", "dataset.shape=[1,8,8]"))
        proposal = Weights(world.first.flat + torch.randn(world.layout.size), world.layout)
        moved, _ = world.exp.server_optimizer.step(world.first, proposal, {})
        parameters = world.layout.parameters
        assert torch.equal(moved.flat[parameters:], proposal.flat[parameters:])


QUIET = {  # a part, its words, and what it is changed to in a round that brings nothing
    "nobody": ("selector", ("selector=fedcs", "selector.round_s=1e6", "fleet=simulated"), {"round_s": 1e-3}),
    "too few": ("aggregator", ("aggregator=krum", "aggregator.on_violation=skip"), {"byzantine": 9}),
}


@pytest.mark.law("server_optimizer", "a round that brings nothing leaves the model and its moments, to the byte")
@pytest.mark.parametrize("option", options("server_optimizer"))
@pytest.mark.parametrize("cause", QUIET)
def test_a_round_that_brings_nothing_leaves_the_model(tiny: Tiny, option: str, cause: str):
    role, words, change = QUIET[cause]
    world = world_of(tiny(f"server_optimizer={option}", *words))
    before, *_ = run_round(world.exp, world, world.initial_state())
    assert not torch.equal(before.models[0].flat, world.first.flat)
    quiet = replace(world.exp, **{role: replace(world.exp.part(role), **change)})
    after, *_ = run_round(quiet, world, before)
    assert torch.equal(after.models[0].flat, before.models[0].flat)
    moments, earlier = (state.memory["server_optimizer"]["0"] for state in (after, before))
    assert moments.keys() == earlier.keys()
    assert all(torch.equal(torch.as_tensor(moments[name]), torch.as_tensor(earlier[name])) for name in earlier)


class Counting(ServerOptimizer):
    """Reports how often it has stepped."""

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        steps = memory.get("steps", 0) + 1
        return proposal, {"steps": steps, "columns": {"steps": steps}}


def test_what_it_reports_is_there_in_a_round_that_brings_nothing(tiny: Tiny):
    role, words, change = QUIET["too few"]
    world = world_of(tiny(*words))
    counting = replace(world.exp, server_optimizer=Counting())
    quiet = replace(counting, **{role: replace(counting.part(role), **change)})
    state, row, _ = run_round(quiet, world, world.initial_state())
    assert row["server_optimizer.steps"] == 1
    state, row, _ = run_round(counting, world, state)
    assert row["server_optimizer.steps"] == 1
    assert not torch.equal(state.models[0].flat, world.first.flat)


@pytest.mark.law("server_optimizer=replace", "the model becomes the proposal")
def test_replace_takes_the_proposal():
    assert path(ServerOptimizer(), [1, -2, 4]) == [1, -1, 3]
