"""What every codec must keep, found from conf/."""

import pytest
import torch
from composing import options
from worlds import Tiny, uploads_like, world_of

from fedexp.simulation import context


@pytest.mark.parametrize("option", options("codec"))
class TestCodec:
    def test_inputs_are_not_written_and_shapes_stay(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"codec={option}"))
        delta = torch.randn(4, world.layout.size)
        kept = delta.clone()
        sent, _ = world.exp.part("codec").encode(uploads_like(delta), {}, context.make_context(world, 1))
        assert torch.equal(delta, kept)
        assert sent.delta.shape == delta.shape
        torch.testing.assert_close(sent.delta, delta, rtol=1e-2, atol=1e-2)

    def test_order_of_clients_does_not_matter(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"codec={option}"))
        codec, ctx, order = world.exp.part("codec"), context.make_context(world, 1), [2, 0, 1]
        delta, memories = torch.randn(3, world.layout.size), []
        for owners in ([0, 1, 2], order):
            sent, memory = codec.encode(uploads_like(delta[owners], owners), {}, ctx)
            again, memory = codec.encode(uploads_like(delta[owners], owners), memory, ctx)
            memories.append((sent.sort_by_owner().delta, again.sort_by_owner().delta))
        assert all(torch.equal(one, other) for one, other in zip(*memories, strict=True))

    def test_a_ratio_is_the_share_of_bytes(self, tiny: Tiny, option: str):
        exp = world_of(tiny(f"codec={option}")).exp
        assert 0 < exp.part("codec").ratio <= 1
        assert exp.upload_bytes(100) == 400 * exp.part("codec").ratio
