"""What every schedule must keep, found from conf/; the warm-up by hand; the way of the rate through a run."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from composing import CONF, options
from worlds import Tiny, first_round, world_of

from fedexp.core import part as spec
from fedexp.core.device_arrays import as_matrix
from fedexp.core.errors import ConfigError
from fedexp.core.values import State
from fedexp.parts.schedule.contract import Schedule, with_rate
from fedexp.parts.server_optimizer.momentum import Momentum
from fedexp.simulation import context
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup.compatibility import refuse
from fedexp.training.stacked.step_schedule import StepArrays, steps_on_host
from fedexp.training.stacked.trainer import StackedTrainer

STILL = {"constant": ("schedule.warmup=0",), "exponential": ("schedule.gamma=1",), "step": ("schedule.gamma=1",)}
STILL |= dict.fromkeys(("cosine", "linear"), ("schedule.end=1",))


def lived(config: dict, count: int = 8) -> list[tuple[State, dict]]:
    world = world_of(config)
    return [(state, row) for state, row, _ in run_rounds(world.exp, world, world.initial_state())][:count]


def models(config: dict) -> list[torch.Tensor]:
    return [state.models[0].flat for state, _ in lived(config)]


@pytest.mark.parametrize("option", options("schedule"))
class TestSchedule:
    def test_both_groups_have_it_in_the_same_words(self, option: str):
        clients, server = ((CONF / group / f"{option}.yaml").read_text() for group in ("schedule", "server_schedule"))
        assert clients == server

    @pytest.mark.law("schedule", "without a warm-up the rate begins whole and never rises")
    def test_it_begins_with_the_whole_rate_and_never_exceeds_it(self, tiny: Tiny, option: str):
        schedule: Schedule = spec.build(tiny(f"schedule={option}", "rounds=20")).schedule
        factors = [schedule.factor(number) for number in range(1, 60)]
        assert factors[0] == 1
        assert all(1 >= one >= other >= 0 for one, other in pairwise(factors))

    @pytest.mark.law("schedule", "a warm-up of w rounds rises by 1 / (w + 1) a round to the whole rate")
    def test_a_warm_up_comes_before_it(self, tiny: Tiny, option: str):
        schedule: Schedule = spec.build(tiny(f"schedule={option}", "schedule.warmup=3", "rounds=20")).schedule
        assert [schedule.factor(number) for number in (0, 1, 2, 3, 4)] == [0.25, 0.25, 0.5, 0.75, 1.0]
        assert schedule.moves

    @pytest.mark.law("schedule", "a schedule that never moves is none, to the byte")
    def test_one_that_never_moves_is_none_bit_by_bit(self, tiny: Tiny, option: str):
        still = models(tiny(f"schedule={option}", *STILL[option]))
        assert all(torch.equal(one, other) for one, other in zip(still, models(tiny()), strict=True))

    def test_the_engines_agree(self, tiny: Tiny, option: str):
        words = (f"schedule={option}", "schedule.warmup=1", "rounds=3", "local.momentum=0.5")
        loop, stacked = (models(tiny(*words, f"engine={engine}")) for engine in ("loop", "stacked"))
        for one, other in zip(loop, stacked, strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


def test_only_rates_that_move_are_columns(tiny: Tiny):
    assert not {"lr", "server_lr"} & lived(tiny())[0][1].keys()
    both = tiny("schedule=exponential", "schedule.gamma=0.5", "server_optimizer=momentum", "server_schedule.warmup=1")
    assert [(row["lr"], row["server_lr"]) for _, row in lived(both)] == [(0.1, 0.5), (0.05, 1.0)]


@pytest.mark.law("schedule=exponential", "a round at a halved rate is a round of a run at that rate, to the byte")
def test_the_rate_of_a_round_is_that_of_a_run_with_this_rate(tiny: Tiny):
    """Round 2 of a halved rate is round 2 of a run with half the rate that begins where the first round ended."""
    halved = world_of(tiny("schedule=exponential", "schedule.gamma=0.5", "local.lr=0.2"))
    plain = world_of(tiny("local.lr=0.1"))
    first, second = (state for state, _, _ in run_rounds(halved.exp, halved, halved.initial_state()))
    other, _, _ = next(run_rounds(plain.exp, plain, first))
    assert torch.equal(second.models[0].flat, other.models[0].flat)


@pytest.mark.law("schedule=cosine", "three rounds and then five are eight rounds, to the byte")
def test_three_rounds_and_five_are_eight(tiny: Tiny):
    words = ("schedule=cosine", "rounds=8", "server_optimizer=momentum", "server_schedule=linear")
    world = world_of(tiny(*words))
    whole = lived(tiny(*words))
    third = whole[2][0]
    rest = [state for state, _, _ in run_rounds(world.exp, world, third)]
    assert len(rest) == 5
    assert torch.equal(rest[-1].models[0].flat, whole[-1][0].models[0].flat)


def test_a_captured_step_reads_the_rate_from_its_bucket(tiny: Tiny):
    """The step that a GPU captures is taken again with another rate in the same bucket, and moves so much more."""
    world = world_of(tiny("engine=stacked", "local.batch_size=full"))
    trainer, task = world.trainer, replace(first_round(world), lr=0.5)
    assert isinstance(trainer, StackedTrainer)
    bucket = trainer.buckets.make_bucket(task, torch.arange(3))
    bucket.rule = trainer.rule.at(bucket.lr)
    ones = np.ones((1, 3, 1), dtype=np.float32)
    index, mask = np.arange(60).reshape(1, 3, 20), np.ones((1, 3, 20), bool)
    turn = steps_on_host(StepArrays(index, mask, ones[..., 0] > 0, 0 * ones, 0 * ones)).at(0)
    moves = []
    for lr in (0.5, 0.25, 0.0):
        bucket.load(replace(task, lr=lr), torch.arange(3))
        trainer._take_step(bucket, turn)
        moves.append(bucket.w - as_matrix(task.start)[:3])
    torch.testing.assert_close(moves[0], 2 * moves[1], atol=1e-7, rtol=1e-5)
    assert not moves[2].any()


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("rule", ["sgd local.momentum=0.9", "adam", "prox", "fedplus", "scaffold"])
def test_a_rate_in_a_tensor_moves_as_the_number_does(tiny: Tiny, rule: str):
    part = spec.build(tiny(f"local={rule.split()[0]}", *rule.split()[1:])).local
    ends = []
    for lr in (0.03, torch.tensor(0.03, dtype=torch.float64)):
        generator = torch.Generator().manual_seed(0)
        w, anchor, grad = (torch.randn(2, 4, generator=generator) for _ in range(3))
        slots, active, moved = torch.zeros(part.slots, 2, 4), torch.tensor([[1.0], [0.0]]), part.at(lr)
        for number in (1.0, 2.0):
            moved.update(w, moved.direction(grad, w, anchor), slots, torch.tensor(number), active)
            moved.pull(w, anchor, active)
        ends.append(w)
    torch.testing.assert_close(ends[0], ends[1], atol=1e-12, rtol=0)


def test_a_rate_is_changed_in_a_copy():
    part = Momentum(lr=2.0)
    assert (with_rate(part, 0.5).lr, part.lr) == (0.5, 2.0)
    assert with_rate(part, None) is part


def test_a_server_without_a_rate_is_refused(tiny: Tiny):
    with pytest.raises(ConfigError, match="but server_optimizer=replace has none; use server_optimizer=momentum"):
        refuse(spec.build(tiny("server_schedule=cosine")))
    refuse(spec.build(tiny("server_schedule=cosine", "server_optimizer=momentum", "server_optimizer.beta=0")))


def test_what_is_tuned_has_the_rate_of_its_round(tiny: Tiny):
    """Full-batch steps of half the rate go half as far, also where a clustering has newcomers tune a model."""
    ends: list[np.ndarray] = []
    for words in ((), ("schedule=exponential", "schedule.gamma=0.5")):
        world = world_of(tiny("local=full_batch_step", *words))
        clients_data = context.make_context(world, 1).clients_data
        tuned = clients_data.fine_tune(world.first.flat, np.arange(2), 2, None)
        ends.append((tuned - world.first.flat).numpy())
    np.testing.assert_allclose(ends[0], 2 * ends[1], atol=1e-7, rtol=1e-4)
