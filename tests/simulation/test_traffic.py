"""What a round sends, by hand: models to be judged and tuned, answers, examples; and the seconds that judging takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core.client_resources import Resources
from fedexp.core.values import SERVER, Plan, Weights
from fedexp.parts.fleet.machines import evaluation_seconds, simulate_round
from fedexp.simulation import context
from fedexp.simulation.context_views import ExtraMessages
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.traffic import megabytes

Tiny = Callable[..., dict[str, Any]]


def lines(tiny: Tiny, *words: str) -> tuple[float, list[dict[str, Any]]]:
    """The megabytes of a model, and what each round says of itself."""
    world = world_of(tiny("scenario.participants=3", *words))
    return world.layout.size * 4 / 1e6, [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]


def test_a_judge_gets_each_model_once():
    first, second = (Weights(None, None) for _ in range(2))  # type: ignore[arg-type]
    besides = ExtraMessages()
    besides.sent_for_evaluation(first, np.array([4, 2]))
    besides.sent_for_evaluation(second, np.array([2]))
    besides.sent_for_evaluation(first, np.array([2, 7]))
    assert [owner.tolist() for owner in besides.evaluators] == [[2, 4, 7], [2]]
    assert besides.reported_losses == 5


def test_by_hand(tiny: Tiny):
    world = world_of(tiny("rounds=1"))
    ctx, size = context.make_context(world, 1), world.layout.size * 4
    besides = context.extra_messages(ctx)
    besides.sent_for_evaluation(world.first, np.array([0, 1, 5]))
    besides.fine_tuned = 2
    plan = Plan(np.array([1, 3, SERVER]), (np.arange(4), np.arange(4), np.arange(6)))
    besides.arrivals, _ = world.exp.pacing.due(plan, world.first, {}, ctx)
    told = megabytes(world.exp, ctx, plan, np.array([3, SERVER]))
    assert told["mb_down"] == pytest.approx((1 + 3 + 2) * size / 1e6)  # to 3, to the judges, to those who tune it
    assert told["mb_up"] == pytest.approx(((1 + 2) * size + 3 * 4 + 6 * (ctx.traffic.example_bytes + 8)) / 1e6)


def test_candidates_that_judge_are_sent_the_model(tiny: Tiny):
    size, (line, *_) = lines(tiny, "selector=power_of_choice", "selector.candidates=5")
    assert line["mb_down"] == pytest.approx(5 * size)
    assert line["mb_up"] == pytest.approx(3 * size + 5 * 4 / 1e6)


def test_afl_asks_everybody_once(tiny: Tiny):
    size, told = lines(tiny, "selector=afl", "rounds=2")
    clients = [6, 3]
    assert [line["mb_down"] for line in told] == pytest.approx([size * each for each in clients])
    assert [line["mb_up"] for line in told] == pytest.approx([3 * size + (3 + 6) * 4 / 1e6, 3 * size + 3 * 4 / 1e6])


OVERLAPPING = (
    "fleet=simulated",
    "fleet.link=own",
    "pacing=buffered",
    "pacing.clients=3",
    "pacing.buffer=2",
    "rounds=6",
)


def test_candidates_that_judge_while_others_train_are_sent_the_model_once(tiny: Tiny):
    """Each step draws twice as many candidates as can begin, of those that are free, and all that begin have judged."""
    size, told = lines(tiny, "selector=power_of_choice", *OVERLAPPING)
    assert [line["pacing.in_flight"] for line in told] == [2] * 6
    candidates = [6, 4, 4, 4, 4, 4]  # of 6 clients; four begin in the first step, two in each later one
    assert [line["mb_down"] for line in told] == pytest.approx([size * each for each in candidates])
    assert [line["mb_up"] for line in told] == pytest.approx([2 * size + 4 * each / 1e6 for each in candidates])


def test_who_arrives_tells_the_loss_of_what_it_was_sent_long_ago(tiny: Tiny):
    size, told = lines(tiny, "selector=afl", *OVERLAPPING)
    assert any(line["pacing.most_stale"] for line in told)
    sent = [6, 2, 2, 2, 2, 2]  # everybody judges the first model; nobody is sent another one to be judged
    assert [line["mb_down"] for line in told] == pytest.approx([size * each for each in sent])
    answers = [6 + 2, 2, 2, 2, 2, 2]
    assert [line["mb_up"] for line in told] == pytest.approx([2 * size + 4 * each / 1e6 for each in answers])


def test_the_loss_that_it_tells_is_that_of_the_model_that_it_was_sent(tiny: Tiny):
    world = world_of(tiny("scenario.participants=3", "selector=afl", *OVERLAPPING))
    models, stale = {1: world.first}, 0
    for state, *_ in run_rounds(world.exp, world, world.initial_state()):
        arrived, ctx = state.memory["pacing"]["arrived"], context.make_context(world, state.round)
        for client, begun in zip(arrived["owner"].tolist(), arrived["begun"].tolist(), strict=True):
            loss = ctx.clients_data.losses_of(models[begun], ctx.plan(np.array([client])))[0]
            valuation = state.memory["selector"]["valuation"][client].item()
            assert valuation == pytest.approx(loss / world.partition.sizes[client] ** 0.5, rel=1e-6)
            stale += begun < state.round
        models[state.round + 1] = state.models[0]
    assert stale


def test_examples_that_the_server_trains_on_have_been_sent(tiny: Tiny):
    size, told = lines(
        tiny, "selector=hybridfl", "fleet=simulated", "selector.round_s=0.9", "selector.upload_permission=1", "rounds=4"
    )
    assert any(line["selector.uploaded_mb"] for line in told)
    for line in told:
        assert line["mb_up"] == pytest.approx(line["participants"] * size + line["selector.uploaded_mb"])


def test_what_random_selection_sends_is_what_it_was(tiny: Tiny):
    size, told = lines(tiny, "rounds=2")
    assert [line["mb_down"] for line in told] == [line["mb_up"] for line in told] == pytest.approx([3 * size] * 2)


class TestClock:
    """Two judges: 10 Mbit/s and 3 examples/s, 5 Mbit/s and 6 examples/s."""

    two = Resources(np.array([10.0, 5.0]), np.array([3.0, 6.0]), np.zeros(2), 20e6)

    def test_judging_by_hand(self):
        # 10 Mbit take 2 s at the slower link; 9 and 18 examples forward take 1 s each, an answer nearly nothing
        seconds = evaluation_seconds(self.two, np.array([1, 1]), np.array([9, 18]), 10e6)
        assert seconds == pytest.approx(2 + 1, abs=1e-4)
        # the first has two models to judge: 2 s down at 10 Mbit/s, then 2 s forward
        assert evaluation_seconds(self.two, np.array([2, 1]), np.array([9, 18]), 10e6) == pytest.approx(2 + 2, abs=1e-4)

    def test_answers_come_one_after_another(self):
        slow = Resources(np.array([32e-6, 16e-6]), np.ones(2), np.zeros(2), 0.0)  # a loss takes 1 s and 2 s
        assert evaluation_seconds(slow, np.ones(2), np.zeros(2), 0.0) == pytest.approx(3)
        assert evaluation_seconds(slow, np.ones(2), np.zeros(2), 0.0, is_shared=False) == pytest.approx(2)

    def test_with_links_of_their_own_judges_do_not_wait_for_each_other(self):
        # 1 s down and 1 s forward; 2 s down and 1 s forward
        seconds = evaluation_seconds(self.two, np.array([1, 1]), np.array([9, 18]), 10e6, is_shared=False)
        assert seconds == pytest.approx(2 + 1, abs=1e-4)
        # the first has two models to judge: 2 s down and 2 s forward
        seconds = evaluation_seconds(self.two, np.array([2, 1]), np.array([9, 18]), 10e6, is_shared=False)
        assert seconds == pytest.approx(2 + 2, abs=1e-4)

    def test_who_begins_after_judging_has_waited_for_it_and_has_the_model(self, tiny: Tiny):
        world = world_of(tiny("scenario.participants=3", "selector=power_of_choice", *OVERLAPPING))
        everybody, judging_s, before_s = np.arange(6), [], 0.0
        for state, line, _ in run_rounds(world.exp, world, world.initial_state()):
            memory, ctx = state.memory["pacing"], context.make_context(world, state.round)
            owner, begun, started_s, ready_s = (
                torch.cat([memory[part][name] for part in ("arrived", "flight")]).numpy()
                for name in ("owner", "begun", "started_s", "ready_s")
            )
            began = begun == state.round
            training_s = ctx.fleet.journeys(owner[began]).training_s
            assert ready_s[began] == pytest.approx(started_s[began] + training_s)  # and nothing to receive
            judging_s.append(started_s[began].min() - before_s)
            before_s = line["sim_s"]
        ctx = context.make_context(world, 1)
        bits, resources = 32.0 * ctx.traffic.sent_entries, ctx.fleet.resources(everybody)
        first = evaluation_seconds(resources, np.ones(6), ctx.sizes, bits, is_shared=False)
        assert judging_s[0] == pytest.approx(first)  # all six are candidates
        assert min(judging_s[1:]) > bits / 1.4e6 / 1.2  # the least time that a model takes to come

    def test_participants_that_tell_their_loss_pass_their_examples_forward_once_more(self, tiny: Tiny):
        clients = np.array([1, 4])
        plain, asked, by_last_epoch = (
            context.make_context(world_of(tiny("fleet=simulated", "local.epochs=2", *words)), 2).fleet.resources(
                clients
            )
            for words in ((), ("selector=oort",), ("selector=afl", "selector.valuation_at=last_epoch"))
        )
        assert asked.update_s == pytest.approx(plain.update_s * (2 + 1 / 3) / 2)
        assert by_last_epoch.update_s.tolist() == plain.update_s.tolist()

    def test_who_has_the_model_is_not_sent_it_again(self):
        stays_s = np.full(2, np.inf)
        assert simulate_round(self.two, stays_s, None, 1.0).seconds == pytest.approx(4 + 2 + 4)
        assert simulate_round(self.two, stays_s, None, 1.0, np.array([1.0, 0.0])).seconds == pytest.approx(2 + 2 + 4)
        assert simulate_round(self.two, stays_s, None, 1.0, np.zeros(2)).seconds == pytest.approx(2 + 4)

    def test_the_clock_of_a_run_holds_the_seconds_of_selection(self, tiny: Tiny):
        world = world_of(tiny("fleet=simulated", "selector=power_of_choice", "scenario.participants=3"))
        (_, line, sent), *_ = run_rounds(world.exp, world, world.initial_state())
        ctx = context.make_context(world, 1)
        judges = np.arange(6)
        ctx.losses(judges)  # twice as many candidates as places: all six
        plan = ctx.plan(sent.owner)
        asked, plain = world.exp.fleet.deliver(sent, plan, {}, ctx)[1], context.make_context(world, 1)
        judging = evaluation_seconds(
            plain.fleet.resources(judges), np.ones(6), world.partition.sizes[judges], 32.0 * ctx.traffic.sent_entries
        )
        training = world.exp.fleet.deliver(sent, plan, {}, plain)[1] - plain.fleet.resources(sent.owner).distribution_s
        assert line["sim_s"] == line["fleet.seconds"] == asked == pytest.approx(judging + training)
        assert judging > 0
