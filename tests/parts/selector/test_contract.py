"""What every selector must keep, found from conf/."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from composing import options
from worlds import Tiny, rounds_with_rows, same, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Memory, Plan, Uploads
from fedexp.simulation import context
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World


@pytest.mark.parametrize("option", options("selector"))
class TestSelector:
    """Three rounds of choosing and learning, with uploads that a test can spoil."""

    def chosen(self, world: World, rounds: int = 3, spoil=lambda uploads: uploads) -> tuple[list[Plan], Memory]:
        selector, memory, plans = world.exp.selector, {}, []
        for number in range(1, rounds + 1):
            ctx = context.make_context(world, number)
            plan, memory = selector.choose(memory, ctx)
            kept = copy.deepcopy(memory)
            plans.append(plan)
            delta = torch.linspace(-1, 1, len(plan.owner) * world.layout.size).view(len(plan.owner), -1) * 0.01
            ones = np.ones(len(plan.owner))
            uploads = Uploads(plan.owner, plan.owner * 0, plan.sizes, ones, delta, ones, ones * 0.5)
            following = selector.observe(spoil(uploads), memory, ctx)
            assert same(memory, kept), "a memory is a value: it is not written in place"
            memory = following
        return plans, memory

    def world(self, tiny: Tiny, option: str, *more: str) -> World:
        return world_of(tiny(f"selector={option}", "fleet=simulated", *more))

    @pytest.mark.law("selector", "a run asks the same clients when it is run again, and nobody twice in a round")
    @pytest.mark.parametrize(("clients", "participants"), [(6, 3), (1, 1), (4, 9), (7, 2)])
    def test_distinct_clients_the_same_twice(self, tiny: Tiny, option: str, clients: int, participants: int):
        world = self.world(tiny, option, f"scenario.clients={clients}", f"scenario.participants={participants}")
        plans, memory = self.chosen(world, 6)
        again, _ = self.chosen(world, 6)
        assert isinstance(memory, dict)
        for plan, twin in zip(plans, again, strict=True):
            own = plan.owner[plan.owner != SERVER]
            assert plan.owner.tolist() == twin.owner.tolist()
            assert len(set(own)) == len(own)
            assert set(own) <= set(range(clients))
            assert len(own) <= (clients if option == "all" else min(participants, clients))
            for owner, shard in zip(plan.owner, plan.shards, strict=True):
                assert owner == SERVER or np.array_equal(shard, world.partition.shard(owner))
            if not world.exp.selector.needs_fleet:
                assert own.tolist() == sorted(own)
                assert len(own) == (clients if option == "all" else min(participants, clients))

    @pytest.mark.law("selector", "nobody who is away is asked")
    def test_asks_nobody_who_is_away(self, tiny: Tiny, option: str):
        words = ("availability=markov", "availability.redraw_s=3", "scenario.participants=4", "rounds=8")
        rows = [row for _, row, _ in rounds_with_rows(self.world(tiny, option, *words))]  # who asks the away is refused
        present = [row["availability.present"] for row in rows]
        assert 0 < min(present) < 4
        assert all(row["participants"] <= row["availability.present"] for row in rows)

    def test_survives_what_is_not_finite(self, tiny: Tiny, option: str):
        def spoil(uploads: Uploads) -> Uploads:
            delta = uploads.delta.clone()
            delta[0] = torch.nan
            nothing = np.full(len(uploads.owner), np.nan)
            return replace(uploads, delta=delta, loss_before=nothing, loss_after=nothing + np.inf)

        plans, _ = self.chosen(self.world(tiny, option), 6, spoil)
        assert all(len(plan.owner) for plan in plans)

    def test_survives_uploads_that_never_came(self, tiny: Tiny, option: str):
        plans, _ = self.chosen(
            self.world(tiny, option), 6, lambda uploads: uploads.where(np.zeros(len(uploads.owner), bool))
        )
        assert all(len(plan.owner) for plan in plans)

    def test_survives_values_that_are_all_equal(self, tiny: Tiny, option: str):
        def equal(uploads: Uploads) -> Uploads:
            return replace(uploads, delta=uploads.delta * 0, loss_before=uploads.loss_before * 0 + 1)

        plans, _ = self.chosen(self.world(tiny, option), 6, equal)
        assert all(len(plan.owner) for plan in plans)

    def test_needs_what_it_says(self, tiny: Tiny, option: str):
        exp = spec.build(tiny(f"selector={option}"))
        if exp.selector.needs_fleet:
            with pytest.raises(ConfigError, match="use fleet=simulated"):
                compatibility.refuse(exp)
        else:
            compatibility.refuse(exp)
