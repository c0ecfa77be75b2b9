"""What every local rule must keep, found from conf/."""

import copy

import numpy as np
import pytest
import torch
from composing import options
from worlds import Tiny, same, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Trained
from fedexp.parts import LocalRule, ModelOutputs
from fedexp.simulation import context
from fedexp.simulation.messages import open_messages
from fedexp.simulation.round import run_round
from fedexp.simulation.world import World

STILL = {"adamw": ("local.weight_decay=0",)}  # what moves a model without a gradient
NEEDS = {"fedem": ("model=mixture",)}


def choice(option: str) -> tuple[str, ...]:
    return (f"local={option}", *NEEDS.get(option, ()))


def filled_slots(rule: LocalRule, anchor: torch.Tensor) -> torch.Tensor:
    slots = torch.zeros(rule.slots, *anchor.shape)
    rule.fill(slots, anchor)
    return slots


@pytest.mark.parametrize("option", options("local"))
class TestLocalRule:
    def begun(self, tiny: Tiny, option: str, *words: str) -> tuple[World, torch.Tensor, torch.Tensor]:
        """The first round of three clients: the world, what they train from, their anchors."""
        world = world_of(tiny(*choice(option), *words))
        start, anchor = world.exp.local.begin(
            world.first.flat.expand(3, -1), np.arange(3), {}, context.make_context(world, 1)
        )
        assert start.shape == (3, world.layout.size)
        assert anchor.shape == (3, world.layout.parameters)
        return world, start[:, : world.layout.parameters], anchor

    @pytest.mark.law("local", "in the first round nothing moves without a gradient, to the byte (adamw: without decay)")
    def test_without_gradient_nothing_moves(self, tiny: Tiny, option: str):
        world, start, anchor = self.begun(tiny, option, *STILL.get(option, ()))
        rule, w = world.exp.local, start.clone()
        direction = rule.direction(torch.zeros_like(w), w, anchor)
        rule.update(w, direction, filled_slots(rule, anchor), torch.tensor(1.0), torch.ones(3, 1))
        rule.pull(w, anchor, torch.ones(3, 1))
        assert torch.equal(w, start)

    @pytest.mark.law("local", "a client that is done keeps its bytes while others of its stack train on")
    def test_a_step_goes_downhill_and_done_rows_stay(self, tiny: Tiny, option: str):
        world, start, anchor = self.begun(tiny, option)
        rule, w, grad = world.exp.local, start.clone(), torch.rand(start.shape) + 0.1
        active = torch.tensor([[1.0], [0.0], [1.0]])
        rule.update(w, rule.direction(grad, w, anchor), filled_slots(rule, anchor), torch.tensor(1.0), active)
        rule.pull(w, anchor, active)
        assert (w[0] < start[0]).all()
        assert torch.equal(w[1], start[1])

    def test_a_done_row_is_not_touched_by_what_is_not_a_number(self, tiny: Tiny, option: str):
        world, start, anchor = self.begun(tiny, option)
        rule, w, grad = world.exp.local, start.clone(), torch.rand(start.shape)
        slots, anchor = filled_slots(rule, anchor), anchor.clone()
        grad[1], anchor[1] = torch.nan, torch.nan
        active = torch.tensor([[1.0], [0.0], [1.0]])
        rule.update(w, rule.direction(grad, w, anchor), slots, torch.tensor(1.0), active)
        rule.pull(w, anchor, active)
        assert torch.equal(w[1], start[1])
        assert w.isfinite().all()
        assert not rule.finish_needs_slot or slots[-1].isfinite().all()

    def test_a_clipped_gradient_is_as_long_as_asked(self, tiny: Tiny, option: str):
        rule = spec.build(tiny(*choice(option), "local.clip_norm=2")).local
        grad = torch.tensor([[3.0, 4.0], [0.6, 0.8]])
        torch.testing.assert_close(rule.clip_gradient(grad), torch.tensor([[1.2, 1.6], [0.6, 0.8]]))

    def test_epochs_may_be_a_part_or_drawn(self, tiny: Tiny, option: str):
        for epochs in ("0.5", "[1,3]"):
            loop, stacked = (
                world_of(tiny(*choice(option), f"local.epochs={epochs}", f"engine={engine}"))
                for engine in ("loop", "stacked")
            )
            ends = [run_round(world.exp, world, world.initial_state())[0].models[0].flat for world in (loop, stacked)]
            torch.testing.assert_close(*ends, atol=1e-5, rtol=0)

    def test_what_an_example_costs_depends_on_it_alone(self, tiny: Tiny, option: str):
        exp, labels, counts = (
            spec.build(tiny(*choice(option))),
            torch.arange(4) % 3,
            torch.tensor([2.0, 1.0, 0.0]),
        )
        seen = [ModelOutputs(torch.randn(4, 3), torch.randn(4, 2, 3)) for _ in range(1 + len(exp.local.compares))]

        def cost(place: slice) -> torch.Tensor:
            mine, *others = (ModelOutputs(*(entry[place] for entry in one)) for one in seen)
            return exp.local.cost(exp.loss, mine, tuple(others), labels[place], counts)

        torch.testing.assert_close(cost(slice(None)), torch.cat([cost(slice(at, at + 1)) for at in range(4)]))

    @pytest.mark.law("local", "what a client received plus the update that it makes is what it trained")
    def test_what_is_sent_is_what_was_trained(self, tiny: Tiny, option: str):
        """With the rule's extra rows behind it; and neither the memory nor what was received is written in place."""
        world, _, _ = self.begun(tiny, option)
        received, memory = world.first.flat.expand(3, -1), {}
        for number in range(1, 4):
            ctx, kept = context.make_context(world, number), copy.deepcopy(memory)
            rows = torch.randn(3, world.layout.size)
            start, _ = world.exp.local.begin(received, np.arange(3), memory, ctx)
            slot = rows[:, : world.layout.parameters] if world.exp.local.finish_needs_slot else None
            trained = Trained(np.arange(3), np.full(3, 2), received, start, rows.clone(), slot)
            message, following = world.exp.local.finish(trained, memory, ctx)
            torch.testing.assert_close(received + message[:, : world.layout.size], rows)
            extra = len(world.exp.local.extra_rows) * world.layout.parameters
            assert message.shape == (3, world.layout.size + extra)
            assert same(memory, kept)
            uploads = open_messages(world.exp, world.layout, uploads_like(message))
            kept = copy.deepcopy(following)
            after = world.exp.local.receive(uploads, following, ctx)
            assert same(following, kept)
            following = after
            memory = following

    def test_a_training_that_is_not_finite_or_took_no_step_is_not_remembered(self, tiny: Tiny, option: str):
        world, _, _ = self.begun(tiny, option)
        received, owner = world.first.flat.expand(3, -1), np.array([SERVER, 2, 4])
        rows = torch.randn(3, world.layout.size)
        rows[1, 3] = torch.nan
        slot = rows[:, : world.layout.parameters] if world.exp.local.finish_needs_slot else None
        trained = Trained(owner, np.array([1, 1, 0]), received, received, rows, slot)
        _, memory = world.exp.local.finish(trained, {}, context.make_context(world, 1))
        assert len(memory.get("owner", ())) == 0

    @pytest.mark.law("local", "a client without a model of its own uses the global one, to the byte")
    def test_clients_without_a_model_of_their_own_use_the_global_one(self, tiny: Tiny, option: str):
        world, _, _ = self.begun(tiny, option)
        received = world.first.flat.expand(3, -1)
        assert torch.equal(world.exp.local.client_models(np.arange(3), received, {}), received)

    @pytest.mark.law("local", "what stays with the clients is zero in every upload")
    def test_what_clients_keep_to_themselves_is_not_sent_and_the_rest_is(self, tiny: Tiny, option: str):
        world, _, _ = self.begun(tiny, option)
        kept, every = world.exp.local.private_columns(world.layout), np.arange(world.layout.size)
        assert kept.tolist() == every[np.isin(every, kept)].tolist()
        _, _, sent = run_round(world.exp, world, world.initial_state())
        moves = sent.delta.any(dim=0).numpy()
        assert not moves[kept].any()
        assert moves[np.setdiff1d(every, kept)].any()

    def test_a_schedule_needs_exactly_one_length(self, tiny: Tiny, option: str):
        with pytest.raises(ConfigError, match=r"local\.epochs and steps exclude each other"):
            spec.build(tiny(*choice(option), "local.epochs=2", "local.steps=3"))
