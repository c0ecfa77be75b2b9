"""A round's jobs, done at once or in groups that are reduced to their mean."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.core.part import build
from fedexp.simulation import local_task
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup import row_groups
from fedexp.simulation.setup.row_groups import group_size, readers_of_all_rows, split_owners
from fedexp.simulation.world import World
from fedexp.training.loop.trainer import Task
from tests.worlds import Tiny, rounds_with_rows, world_of

GROUPED = [
    (),
    ("aggregator.weighting=uniform",),
    ("local=personal_layer", "evaluation.personal_fraction=0.2"),
    ("local.momentum=0.9", "local.worker_momentum=true"),
    ("selector=afl",),
    ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3"),
    ("server_optimizer=adam",),
    ("evaluation.local_models=true", "evaluation.test=false"),
]
WHOLE = [
    ("aggregator=krum", "aggregator=krum"),
    ("aggregator=fednova", "aggregator=fednova"),
    ("selector=greedyfed", "selector=greedyfed"),
    ("local=scaffold", "local=scaffold"),
    ("codec=float16", "codec=float16"),
    ("attack=sign_flip", "attack=sign_flip"),
    ("fleet=simulated", "fleet=simulated"),
    ("pre_aggregation=bucketing", "pre_aggregation=bucketing"),
    ("clustering=ifca", "clustering=ifca"),
    ("evaluation.local_models=true", "evaluation.local_models=true"),
]


def test_all_jobs_are_one_group_up_to_a_size_that_follows_from_the_messages_alone(tiny: Tiny):
    assert [group_size(width) for width in (1, 2**21, 2**22, 11_170_000, 2**28)] == [128, 128, 64, 24, 8]
    exp, owner = world_of(tiny()).exp, np.array([5, 3, 9])
    [together] = split_owners(exp, owner, 1)
    assert together.tolist() == [0, 1, 2]
    many = np.random.default_rng(0).permutation(300)
    groups = split_owners(exp, many, 1)
    assert [many[group].tolist() for group in groups] == [[*range(128)], [*range(128, 256)], [*range(256, 300)]]


@pytest.mark.parametrize(("words", "reader"), WHOLE)
def test_whoever_compares_rows_gets_all_of_them(tiny: Tiny, words: str, reader: str):
    exp = build(tiny(words))
    assert readers_of_all_rows(exp) == [reader]
    assert len(split_owners(exp, np.arange(300), 1)) == 1


@pytest.mark.parametrize("words", GROUPED, ids=" ".join)
def test_groups_give_the_model_of_all_rows_at_once(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]):
    def run() -> list[tuple[Any, ...]]:
        world = world_of(tiny("rounds=2", "scenario.participants=5", *words))
        assert not readers_of_all_rows(world.exp)
        return list(rounds_with_rows(world))

    whole = run()
    monkeypatch.setattr(row_groups, "MOST_ROWS", 2)
    for (state, row, sent), (grouped_state, grouped_row, grouped_sent) in zip(whole, run(), strict=True):
        torch.testing.assert_close(grouped_state.models[0].flat, state.models[0].flat)
        assert grouped_sent.owner.tolist() == sent.owner.tolist()
        assert grouped_sent.delta.shape == (5, 0)
        assert grouped_row.keys() == row.keys()
        assert grouped_state.memory.keys() == state.memory.keys()
        same_cells = [name for name in row if not name.endswith("_s") and isinstance(row[name], int)]
        assert [grouped_row[name] for name in same_cells] == [row[name] for name in same_cells]


def test_workers_change_no_bit_of_groups(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_groups, "MOST_ROWS", 2)

    def last_model(workers: int) -> torch.Tensor:
        world = world_of(tiny("rounds=2", "scenario.participants=5", f"engine.workers={workers}"))
        with with_workers(world.exp, world, world.initial_state()) as staffed_world:
            *_, (state, _, _) = run_rounds(world.exp, staffed_world, world.initial_state())
        return state.models[0].flat

    assert torch.equal(last_model(1), last_model(2))


def test_what_is_not_finite_is_dropped_from_its_group(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(row_groups, "MOST_ROWS", 2)
    world = world_of(tiny("scenario.participants=5"))
    honest = local_task.train_rows

    def spoiled(world: World, task: Task, rows: np.ndarray) -> torch.Tensor:
        out = honest(world, task, rows)
        out[torch.from_numpy(np.isin(task.plan.owner[rows], (1, 2))), 0] = math.nan
        return out

    monkeypatch.setattr(local_task, "train_rows", spoiled)
    state, row, _ = run_round(world.exp, world, world.initial_state())
    assert row["aggregator.dropped"] == 2
    assert [record.message for record in caplog.records] == ["round 1: 2 of 5 updates are not finite and were dropped"]
    monkeypatch.setattr(row_groups, "MOST_ROWS", 128)
    whole, _, _ = run_round(world.exp, world, world.initial_state())
    torch.testing.assert_close(state.models[0].flat, whole.models[0].flat)


def test_a_round_in_which_nothing_counts_leaves_the_model(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_groups, "MOST_ROWS", 2)
    world = world_of(tiny("scenario.participants=5"))
    monkeypatch.setattr(type(world.exp.aggregator), "row_weights", lambda _, uploads: uploads.examples * 0.0)
    state, _, _ = run_round(world.exp, world, world.initial_state())
    assert torch.equal(state.models[0].flat, world.first.flat)
