"""What every option of a role must keep, found from conf/: dropping in a YAML file enrols the part."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.config.location import conf_dir
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Layout, Memory, Plan, Trained, Uploads, Weights
from fedexp.parts.dataset.contract import Facts
from fedexp.simulation import compatibility, context
from fedexp.simulation.round import fold, run_round
from fedexp.simulation.world import World, build_world
from fedexp.training.workers import Crew

Tiny = Callable[..., dict[str, Any]]


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def world_of(config: dict[str, Any]) -> World:
    return build_world(spec.build(config), None, Crew())


def uploads_like(delta: torch.Tensor, owner: list[int] | None = None) -> Uploads:
    clients = np.array(owner if owner is not None else range(len(delta)))
    return Uploads(clients, clients * 0, clients * 0 + 20, clients * 0 + 1.0, delta, clients * 1.0, clients * 0.5)


def folded(
    world: World, uploads: Uploads, mem: dict[str, Memory] | None = None
) -> tuple[torch.Tensor, dict[str, Memory]]:
    models, memory = fold(world.exp, (world.first,), uploads, mem or {}, context.at(world, 1))
    return models[0].flat, memory


WEIGHTLESS = {"pfnm": ("aggregator.s=1e-9",)}  # what keeps a rule's prior from pulling at agreeing clients


@pytest.fixture(params=options("aggregator"))
def rule(request: pytest.FixtureRequest, tiny: Tiny) -> World:
    return world_of(tiny(f"aggregator={request.param}", "scenario.clients=5", *WEIGHTLESS.get(request.param, ())))


class TestAggregator:
    def test_agreeing_clients_are_obeyed(self, rule: World):
        row = torch.randn(rule.layout.size) * 0.01
        moved, _ = folded(rule, uploads_like(row.expand(5, -1)))
        torch.testing.assert_close(moved, rule.first.flat + row)

    def test_order_of_clients_does_not_matter(self, rule: World):
        delta = torch.randn(5, rule.layout.size)
        order = [3, 0, 4, 2, 1]
        straight, _ = folded(rule, uploads_like(delta))
        turned, _ = folded(rule, uploads_like(delta[order], order))
        assert torch.equal(straight, turned)

    def test_nobody_leaves_the_model_as_it_is(self, rule: World):
        moved, _ = folded(rule, uploads_like(torch.zeros(0, rule.layout.size)))
        assert torch.equal(moved, rule.first.flat)

    def test_what_is_not_finite_is_dropped_and_counted(self, rule: World):
        delta = torch.randn(5, rule.layout.size)
        spoiled = delta.clone()
        spoiled[1, 7], spoiled[3, 0] = torch.nan, torch.inf
        clean, _ = folded(rule, uploads_like(delta).where(np.array([0, 2, 4])))
        moved, memory = folded(rule, uploads_like(spoiled))
        assert torch.equal(moved, clean)
        assert memory["aggregator"]["columns"]["dropped"] == 2

    def test_inputs_are_not_written(self, rule: World):
        delta = torch.randn(4, rule.layout.size)
        kept, first = delta.clone(), rule.first.flat.clone()
        folded(rule, uploads_like(delta))
        assert torch.equal(delta, kept)
        assert torch.equal(rule.first.flat, first)

    def test_the_same_columns_in_every_round(self, rule: World, caplog: pytest.LogCaptureFixture):
        reports, memory, models = [], {}, (rule.first,)
        for number, rows in enumerate((5, 0, 1, 4), start=1):
            uploads = uploads_like(torch.randn(rows, rule.layout.size))
            models, memory = fold(rule.exp, models, uploads, memory, context.at(rule, number))
            reports.append(memory["aggregator"]["columns"])
        assert all(report.keys() == reports[0].keys() for report in reports)
        assert all(value is None or type(value) in (int, float) for report in reports for value in report.values())

    def test_clients_without_examples_have_no_say(self, rule: World):
        delta = torch.randn(5, rule.layout.size)
        delta[[1, 4]] = 0
        uploads = uploads_like(delta)
        silent = replace(uploads, examples=np.array([20, 0, 20, 20, 0]))
        moved, _ = folded(rule, silent)
        expected, _ = folded(rule, uploads.where(np.array([0, 2, 3])))
        assert torch.equal(moved, expected)


@pytest.mark.parametrize("option", options("pre_aggregation"))
class TestPreAggregation:
    @pytest.mark.parametrize("aggregator", options("aggregator"))
    def test_agreeing_clients_are_obeyed_by_every_rule(self, tiny: Tiny, option: str, aggregator: str):
        words = (f"aggregator={aggregator}", f"pre_aggregation={option}", *WEIGHTLESS.get(aggregator, ()))
        world = world_of(tiny(*words, "scenario.clients=7"))
        rule = world.exp.aggregator
        if world.exp.pre_aggregation.averages_rows and (rule.keeps_rows or rule.hides_rows or not rule.keeps_layout):
            with pytest.raises(ConfigError, match=f"pre_aggregation={option} mixes the rows of"):
                compatibility.refuse(world.exp)
            return
        row = torch.randn(world.layout.size) * 0.01
        moved, _ = folded(world, uploads_like(row.expand(7, -1)))
        torch.testing.assert_close(moved, world.first.flat + row)

    def test_order_of_clients_does_not_matter(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"pre_aggregation={option}"))
        delta, order = torch.randn(5, world.layout.size), [3, 0, 4, 2, 1]
        straight, memory = folded(world, uploads_like(delta))
        turned, again = folded(world, uploads_like(delta[order], order))
        assert torch.equal(straight, turned)
        assert memory["pre_aggregation"]["columns"] == again["pre_aggregation"]["columns"]

    def test_the_same_columns_in_every_round(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"pre_aggregation={option}"))
        reports = []
        for rows in (5, 0, 1):
            moved, memory = folded(world, uploads_like(torch.randn(rows, world.layout.size)))
            reports.append(memory["pre_aggregation"]["columns"].keys())
            assert rows or torch.equal(moved, world.first.flat)
        assert reports[0] == reports[1] == reports[2]

    def test_inputs_are_not_written(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"pre_aggregation={option}"))
        delta = torch.randn(4, world.layout.size)
        kept = delta.clone()
        folded(world, uploads_like(delta))
        assert torch.equal(delta, kept)


@pytest.mark.parametrize("option", options("attack"))
class TestAttack:
    def attacked(self, tiny: Tiny, option: str, owner: list[int], malicious: int) -> tuple[World, Uploads, Uploads]:
        world = world_of(tiny(f"attack={option}", "dataset.shape=[1,8,8]", f"scenario.malicious={malicious}"))
        delta = torch.randn((len(owner), world.layout.size), generator=torch.Generator().manual_seed(3))
        sent = uploads_like(delta, owner)
        before = delta.clone()
        (got, memory), (again, _) = (world.exp.attack.tamper(sent, {}, context.at(world, 1)) for _ in range(2))
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
        honest = ~np.isin(owner, world.malicious)
        assert torch.equal(got.delta[honest], sent.delta[honest])
        assert got.delta.isfinite().all()
        assert got.delta.dtype == sent.delta.dtype
        assert got.owner.tolist() == owner

    def test_nobody_takes_part(self, tiny: Tiny, option: str):
        _, _, got = self.attacked(tiny, option, [], 3)
        assert len(got.owner) == 0


@pytest.mark.parametrize("option", options("selector"))
class TestSelector:
    """Three rounds of choosing and learning, with uploads that a test can spoil."""

    def chosen(self, world: World, rounds: int = 3, spoil=lambda uploads: uploads) -> tuple[list[Plan], Memory]:
        selector, memory, plans = world.exp.selector, {}, []
        for number in range(1, rounds + 1):
            ctx = context.at(world, number)
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
            with pytest.raises(ConfigError, match="set fleet=simulated"):
                compatibility.refuse(exp)
        else:
            compatibility.refuse(exp)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


@pytest.mark.parametrize("option", options("server_optimizer"))
class TestServerOptimizer:
    def test_no_proposal_no_move(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"server_optimizer={option}"))
        moved, _ = world.exp.server_optimizer.step(world.first, world.first, {})
        torch.testing.assert_close(moved.flat, world.first.flat)

    def test_buffers_take_the_proposals_values(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"server_optimizer={option}", "model=complex_cnn", "dataset.shape=[1,8,8]"))
        proposal = Weights(world.first.flat + torch.randn(world.layout.size), world.layout)
        moved, _ = world.exp.server_optimizer.step(world.first, proposal, {})
        parameters = world.layout.parameters
        assert torch.equal(moved.flat[parameters:], proposal.flat[parameters:])


@pytest.mark.parametrize("option", options("local"))
class TestLocalRule:
    def begun(self, tiny: Tiny, option: str) -> tuple[World, torch.Tensor, torch.Tensor]:
        """The first round of three clients: the world, what they train from, their anchors."""
        world = world_of(tiny(f"local={option}"))
        start, anchor = world.exp.local.begin(world.first.flat.expand(3, -1), np.arange(3), {}, context.at(world, 1))
        assert start.shape == (3, world.layout.size)
        assert anchor.shape == (3, world.layout.parameters)
        return world, start[:, : world.layout.parameters], anchor

    def test_without_gradient_nothing_moves(self, tiny: Tiny, option: str):
        world, start, anchor = self.begun(tiny, option)
        rule, w = world.exp.local, start.clone()
        direction = rule.direction(torch.zeros_like(w), w, anchor)
        rule.update(w, direction, torch.zeros(rule.slots, *w.shape), torch.tensor(1.0), torch.ones(3, 1))
        rule.pull(w, anchor, torch.ones(3, 1))
        assert torch.equal(w, start)

    def test_a_step_goes_downhill_and_done_rows_stay(self, tiny: Tiny, option: str):
        world, start, anchor = self.begun(tiny, option)
        rule, w, grad = world.exp.local, start.clone(), torch.rand(start.shape) + 0.1
        active = torch.tensor([[1.0], [0.0], [1.0]])
        rule.update(w, rule.direction(grad, w, anchor), torch.zeros(rule.slots, *w.shape), torch.tensor(1.0), active)
        rule.pull(w, anchor, active)
        assert (w[0] < start[0]).all()
        assert torch.equal(w[1], start[1])

    def test_what_is_sent_is_what_was_trained(self, tiny: Tiny, option: str):
        """And neither the memory nor what was received is written in place."""
        world, _, _ = self.begun(tiny, option)
        received, memory = world.first.flat.expand(3, -1), {}
        for number in range(1, 4):
            ctx, kept = context.at(world, number), copy.deepcopy(memory)
            rows = torch.randn(3, world.layout.size)
            start, _ = world.exp.local.begin(received, np.arange(3), memory, ctx)
            trained = Trained(np.arange(3), np.full(3, 2), received, start, rows.clone())
            delta, following = world.exp.local.finish(trained, memory, ctx)
            torch.testing.assert_close(received + delta, rows)
            assert same(memory, kept)
            memory = following

    def test_a_training_that_is_not_finite_or_took_no_step_is_not_remembered(self, tiny: Tiny, option: str):
        world, _, _ = self.begun(tiny, option)
        received, owner = world.first.flat.expand(3, -1), np.array([SERVER, 2, 4])
        rows = torch.randn(3, world.layout.size)
        rows[1, 3] = torch.nan
        trained = Trained(owner, np.array([1, 1, 0]), received, received, rows)
        _, memory = world.exp.local.finish(trained, {}, context.at(world, 1))
        assert len(memory.get("owner", ())) == 0

    def test_clients_without_a_model_of_their_own_use_the_global_one(self, tiny: Tiny, option: str):
        world, _, _ = self.begun(tiny, option)
        received = world.first.flat.expand(3, -1)
        assert torch.equal(world.exp.local.serve(np.arange(3), received, {}), received)

    def test_what_clients_keep_to_themselves_is_not_sent_and_the_rest_is(self, tiny: Tiny, option: str):
        world, _, _ = self.begun(tiny, option)
        kept, every = world.exp.local.keeps(world.layout), np.arange(world.layout.size)
        assert kept.tolist() == every[np.isin(every, kept)].tolist()
        _, _, sent = run_round(world.exp, world, world.beginning())
        moves = sent.delta.any(dim=0).numpy()
        assert not moves[kept].any()
        assert moves[np.setdiff1d(every, kept)].any()

    def test_a_schedule_needs_exactly_one_length(self, tiny: Tiny, option: str):
        with pytest.raises(ConfigError, match=r"local\.epochs and steps exclude each other"):
            spec.build(tiny(f"local={option}", "local.epochs=2", "local.steps=3"))


@pytest.mark.parametrize("option", options("model"))
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (6, 128), (561,), (8,)])
def test_every_model_runs_or_says_why_not(tiny: Tiny, option: str, shape: tuple[int, ...]):
    model, facts = spec.build(tiny(f"model={option}")).model, Facts(shape, 7, 10)
    try:
        model.refuse(facts)
    except ConfigError as error:
        assert str(error).startswith(f"model={option} needs")  # noqa: PT017 - either outcome is right
        return
    network = model.network(facts)
    logits = network(torch.randn(3, *shape))
    assert logits.shape == (3, 7)
    grads = torch.autograd.grad(logits.sum(), list(network.parameters()), allow_unused=True)
    assert all(grad is not None for grad in grads)
    assert Layout.of(network).size == sum(grad.numel() for grad in grads if grad is not None) + sum(
        buffer.numel() for buffer in network.buffers()
    )


@pytest.mark.parametrize("option", options("fleet"))
def test_every_fleet_delivers_and_survives_nobody(tiny: Tiny, option: str):
    world = world_of(tiny(f"fleet={option}"))
    uploads = uploads_like(torch.zeros(3, world.layout.size))
    plan = context.at(world, 1).plan(uploads.owner)
    arrived, seconds, _ = world.exp.fleet.deliver(uploads, plan, {}, context.at(world, 1))
    assert set(arrived.owner) <= set(uploads.owner)
    assert (seconds > 0) == world.exp.fleet.simulates
    nobody, _, _ = world.exp.fleet.deliver(uploads.where(np.zeros(3, bool)), plan, {}, context.at(world, 1))
    assert len(nobody.owner) == 0


@pytest.mark.parametrize("option", options("stop"))
def test_every_stop_answers_with_a_reason_or_none(tiny: Tiny, option: str):
    spent = ("privacy=dp_sgd", "privacy.clip=1", "privacy.epsilon=3", "privacy.delta=1e-3")
    stop = spec.build(tiny(f"stop={option}", "fleet=simulated", *(spent if option == "privacy_budget" else ()))).stop
    reason, memory = stop.judge(
        {"validation_loss": 1.0, "validation_accuracy": 0.0, "sim_s": 0.0, "privacy.epsilon_next": 1.0}, {}
    )
    assert reason is None
    assert isinstance(memory, dict)


@pytest.mark.parametrize("option", options("engine"))
def test_every_engine_names_itself_and_the_reason(tiny: Tiny, option: str):
    world = world_of(tiny(f"engine={option}", "engine.workers=1"))
    assert world.choice.name in ("loop", "stacked")
    assert world.choice.reason


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
            following = audit.observe(uploads, memory, context.at(world, number))
            assert same(memory, kept), "a memory is a value: it is not written in place"
            memory = following
        told = audit.report(memory, context.at(world, 4))
        assert told.keys() == audit.blank().keys()
        assert all(value is not None for value in told.values())

    def test_nobody_takes_part(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"audit={option}"))
        audit = world.exp.audit
        memory = audit.observe(uploads_like(torch.zeros(0, world.layout.size)), {}, context.at(world, 1))
        assert audit.report(memory, context.at(world, 2)).keys() == audit.blank().keys()
