"""What every attack must keep, found from conf/."""

import numpy as np
import pytest
import torch
from composing import options
from worlds import Tiny, uploads_like, world_of

from fedexp.core.values import Uploads
from fedexp.simulation import context
from fedexp.simulation.world import World


@pytest.mark.parametrize("option", options("attack"))
class TestAttack:
    def attacked(self, tiny: Tiny, option: str, owner: list[int], malicious: int) -> tuple[World, Uploads, Uploads]:
        world = world_of(tiny(f"attack={option}", "dataset.shape=[1,8,8]", f"scenario.malicious={malicious}"))
        delta = torch.randn((len(owner), world.layout.size), generator=torch.Generator().manual_seed(3))
        sent = uploads_like(delta, owner)
        before = delta.clone()
        (got, memory), (again, _) = (
            world.exp.attack.tamper(sent, {}, context.make_context(world, 1)) for _ in range(2)
        )
        assert torch.equal(sent.delta, before), "what was sent is not written to"
        assert torch.equal(got.delta, again.delta)
        assert isinstance(memory, dict)
        return world, sent, got

    @pytest.mark.parametrize("owner", [[0, 1, 2, 3, 4, 5], [4], [5, 0, 3]])
    @pytest.mark.parametrize("malicious", [0, 2, 6])
    def test_honest_rows_stay_and_forged_ones_are_finite(
        self, tiny: Tiny, option: str, owner: list[int], malicious: int
    ):
        world, sent, got = self.attacked(tiny, option, owner, malicious)
        honest = torch.from_numpy(~np.isin(owner, world.malicious))
        assert torch.equal(got.delta[honest], sent.delta[honest])
        assert got.delta.isfinite().all()
        assert got.delta.dtype == sent.delta.dtype
        assert got.owner.tolist() == owner

    def test_nobody_takes_part(self, tiny: Tiny, option: str):
        _, _, got = self.attacked(tiny, option, [], 3)
        assert len(got.owner) == 0
