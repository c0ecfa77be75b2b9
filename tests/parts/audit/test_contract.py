"""What every audit must keep, found from conf/."""

import copy

import pytest
import torch
from composing import options
from worlds import Tiny, same, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.simulation import context


@pytest.mark.parametrize("option", options("audit"))
class TestAudit:
    def test_everybody_keeps_their_examples_and_half_of_what_is_planted_is_trained_on(self, tiny: Tiny, option: str):
        plain, world = world_of(tiny()), world_of(tiny(f"audit={option}"))
        assert len(world.train) == len(plain.train) + len(world.canaries.index)
        for client in range(6):
            own = world.canaries.index[world.canaries.included & (world.canaries.owner == client)]
            assert world.partition.shard(client).tolist() == [*plain.partition.shard(client), *own]
        assert abs(world.canaries.included.sum() - len(world.canaries.index) / 2) <= len(world.canaries.index) / 10

    def test_an_evaluated_round_fills_the_cells_that_others_leave_blank(self, tiny: Tiny, option: str):
        audit, world = spec.build(tiny(f"audit={option}")).audit, world_of(tiny(f"audit={option}"))
        uploads, memory = uploads_like(torch.randn(3, world.layout.size) * 0.01), {}
        for number in range(1, 4):
            kept = copy.deepcopy(memory)
            following = audit.observe(uploads, memory, context.make_context(world, number))
            assert same(memory, kept), "a memory is a value: it is not written in place"
            memory = following
        told = audit.report(memory, context.make_context(world, 4))
        assert told.keys() == audit.empty_columns().keys()
        assert all(value is not None for value in told.values())

    def test_nobody_takes_part(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"audit={option}"))
        audit = world.exp.audit
        memory = audit.observe(uploads_like(torch.zeros(0, world.layout.size)), {}, context.make_context(world, 1))
        assert audit.report(memory, context.make_context(world, 2)).keys() == audit.empty_columns().keys()
