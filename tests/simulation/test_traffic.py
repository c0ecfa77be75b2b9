"""What a round sends, by hand: models to be judged and tuned, answers, examples; and the seconds that judging takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
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
