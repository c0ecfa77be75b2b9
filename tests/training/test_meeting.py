"""Which runs share a stack, and what becomes of their examples and errors."""

import gc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from composing import tiny
from sweep.lockstep import close, together

from fedexp.core import part as spec
from fedexp.core.values import Plan
from fedexp.maths.optimizer_steps import descend
from fedexp.parts.local.contract import LocalRule
from fedexp.run import run as execution
from fedexp.simulation.building import build_world
from fedexp.simulation.company import Company
from fedexp.sweep.companions import Shared
from fedexp.training import engine
from fedexp.training.batches import Batches
from fedexp.training.engine import Choice
from fedexp.training.loop import Task, Trainer
from fedexp.training.made import Made
from fedexp.training.meeting import Guest, Meeting, Posted
from fedexp.training.workers import Crew

STACKED = Choice("stacked", "as asked")


@dataclass(frozen=True, kw_only=True)
class OfNumbers(LocalRule):
    """Takes one rate for all rows."""

    def update(self, w, grad, slots, step, active):
        descend(w, grad, float(self.lr), active)


class Meeter(Company):
    """Company whose runs meet, and which keeps what they are made of."""

    def __init__(self) -> None:
        self.meeting, self.made, self.posted = Meeting(), [], []
        self.shared = Shared()

    def data(self, exp):
        return self.shared.data(exp)

    def examples(self, split, data, device, augment=None):
        return self.shared.examples(split, data, device, augment)

    def trainer(self, choice: Choice, made: Made) -> Trainer:
        self.made.append(made)
        return self.meeting.trainer(STACKED, made, self.post)

    def post(self, posted: Posted) -> torch.Tensor:
        self.posted.append(posted)
        return posted.task.start.new_zeros((len(posted.rows), 1))


def met(*several: tuple[str, ...]) -> tuple[Meeter, list]:
    company = Meeter()
    return company, [build_world(spec.build(tiny(*words)), None, Crew(), company) for words in several]


def test_who_shares_a_stack():
    same = [("seed=0",), ("seed=1", "local.lr=0.3"), ("selector=afl", "aggregator=krum", "rounds=9", "schedule=cosine")]
    company, _ = met(*same)
    assert len(company.meeting.stacks) == 1
    for words in (("model.hidden=[9]",), ("local.momentum=0.5",), ("local.batch_size=7",), ("local=adam",)):
        company, worlds = met(("seed=0",), words)
        assert len(company.meeting.stacks) == 2, words
        assert all(isinstance(world.trainer, Guest) for world in worlds)


def test_a_loop_waits_for_nobody():
    company, [world] = met(("seed=0",))
    trainer = company.meeting.trainer(Choice("loop", "as asked"), company.made[0], company.post)
    assert not isinstance(trainer, Guest)
    assert world.trainer in company.meeting.stacks[0].guests


def test_who_joins_a_stack_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    tried, warm_up = [], engine.warm_up
    monkeypatch.setattr(engine, "warm_up", lambda *given: tried.append(given) or warm_up(*given))
    together(tmp_path, [tiny("engine=stacked", f"seed={seed}") for seed in range(3)])
    assert len(tried) == 2, "whether the first can be stacked, and its trainer"


def test_pools_have_a_bound():
    small = "engine.memory_mb=0.008"  # 120 examples of 8 numbers, and their labels, take 4.8 kB
    company, _ = met(*((f"seed={seed}", small) for seed in range(2)))
    assert len(company.meeting.stacks) == 2
    company, _ = met(*((f"local.lr=0.{rate}", small) for rate in range(1, 4)))
    assert len(company.meeting.stacks) == 1, "equal data lie there once"


def test_equal_data_are_held_once():
    _, worlds = met(("dataset=digits", "seed=0"), ("dataset=digits", "seed=1"))
    assert worlds[0].train is worlds[1].train
    assert worlds[0].test is worlds[1].test
    _, worlds = met(("seed=0",), ("seed=1",))
    assert worlds[0].train is not worlds[1].train
    _, worlds = met(("dataset=digits",), ("dataset=digits", "attack=label_flip", "scenario.malicious=2"))
    assert worlds[0].train is not worlds[1].train
    assert worlds[0].test is worlds[1].test


def test_stacks_that_nobody_needs_are_given_up():
    company, worlds = met(("seed=0",))
    company.made.clear()
    del worlds
    gc.collect()
    build_world(spec.build(tiny("local=adam")), None, Crew(), company)
    assert len(company.meeting.stacks) == 1


def test_each_row_is_trained_as_in_its_own_run():
    company, worlds = met(("seed=0",), ("seed=1",))
    for world in worlds:
        row, shard = world.first.flat[None], world.partition.shard(0)
        batches = (Batches(np.arange(len(shard)), np.array([0, len(shard)]), 1, len(shard)),)
        task = Task(row, row[:, : world.layout.parameters], Plan(np.zeros(1, np.int64), (shard,)), batches, 7, 3)
        world.trainer.run(task, np.arange(1))
    answers = company.meeting.train(company.posted)
    apart = [company.meeting.train([one])[0] for one in company.posted]
    for answer, own in zip(answers, apart, strict=True):
        assert isinstance(answer, torch.Tensor)
        assert isinstance(own, torch.Tensor)
        torch.testing.assert_close(answer, own)


def test_a_rule_that_takes_one_rate_trains_in_a_pass_for_each(tmp_path: Path):
    configs = [tiny(f"local.lr={lr}", "engine=stacked") for lr in (0.05, 0.2)]
    for config in configs:
        known = {name: config["local"][name] for name in OfNumbers.config_keys()}
        config["local"] = {"_target_": f"{__name__}.OfNumbers", **known}
    for number, config in enumerate(configs):
        execution.run(config, tmp_path / "alone" / str(number))
    together(tmp_path / "together", configs)
    for number in ("0", "1"):
        close(tmp_path / "together" / number, tmp_path / "alone" / number)
