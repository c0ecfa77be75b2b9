"""What every server optimizer must keep, found from conf/."""

import pytest
import torch
from composing import options
from server_steps import path
from worlds import Tiny, world_of

from fedexp.core.values import Weights
from fedexp.parts.server_optimizer.contract import ServerOptimizer


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


@pytest.mark.law("server_optimizer=replace", "the model becomes the proposal")
def test_replace_takes_the_proposal():
    assert path(ServerOptimizer(), [1, -2, 4]) == [1, -1, 3]
