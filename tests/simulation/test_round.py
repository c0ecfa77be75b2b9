"""The round as a whole: identities, the columns of its row, and what happens when clients fail."""

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core.errors import ConfigError, RunError
from fedexp.core.values import Uploads, Weights
from fedexp.run.run import run
from fedexp.scoring.evaluation import Evaluation
from fedexp.simulation import context
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.round import fold, merge_memories, models_to_update, run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup.data_split import split_validation

Tiny = Callable[..., dict[str, Any]]


def test_runs_that_differ_in_one_part_stay_paired(tiny: Tiny):
    one, other = world_of(tiny("rounds=4")), world_of(tiny("rounds=4", "server_optimizer=momentum", "model.hidden=[5]"))
    assert one.partition.sha256() == other.partition.sha256()
    for number in range(1, 4):
        chosen = [
            world.exp.selector.choose({}, context.make_context(world, number))[0].owner.tolist()
            for world in (one, other)
        ]
        assert chosen[0] == chosen[1]


def test_the_row_of_a_round(tiny: Tiny):
    world = world_of(tiny("fleet=simulated", "scenario.participants=3"))
    lived = list(run_rounds(world.exp, world, world.initial_state()))
    for number, (state, row, sent) in enumerate(lived, start=1):
        assert row["round"] == state.round == number
        assert (row["participants"], row["examples"]) == (3, 60)
        assert row["mb_down"] == row["mb_up"] == pytest.approx(3 * 4 * world.layout.size / 1e6)
        assert row["train_loss"] == pytest.approx(np.average(sent.loss_after, weights=sent.examples))
        assert row["sim_s"] == pytest.approx(sum(each["fleet.seconds"] for _, each, _ in lived[:number]))
        assert {"select_s", "train_s", "aggregate_s", "evaluate_s", "host_s", "aggregator.dropped"} <= row.keys()
    assert lived[-1][0].updates == 6


def test_rounds_without_evaluation_have_empty_scores_but_the_last(tiny: Tiny):
    world = world_of(tiny("rounds=5", "evaluation.every=3"))
    scored = [row["round"] for _, row, _ in run_rounds(world.exp, world, world.initial_state()) if "test_loss" in row]
    assert scored == [3, 5]


def test_evaluations_by_the_clock_follow_the_first_round_that_ends_in_a_new_period(tiny: Tiny):
    words = ("rounds=7", "fleet=simulated", "pacing=buffered", "pacing.clients=3", "pacing.buffer=1")
    world = world_of(tiny(*words, "evaluation.validation=true", "evaluation.every_s=0.5"))
    rows = [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]
    assert [int(row["sim_s"] // 0.5) for row in rows] == [0, 1, 1, 1, 2, 2, 3]
    assert [row["round"] for row in rows if row.get("test_loss") is not None] == [2, 5, 7]
    assert [row["round"] for row in rows if row.get("validation_loss") is not None] == [2, 5, 7]


@pytest.mark.parametrize("period_s", [0.1, 115.8])
def test_no_look_is_lost_to_the_rounding_of_times(period_s: float):
    """Added up or multiplied, 200 periods end where 200 looks are due."""
    for ends in (list(accumulate([period_s] * 200, initial=0.0)), [number * period_s for number in range(201)]):
        every = Evaluation(every_s=period_s)
        assert all(every.is_due(number, *span) for number, span in enumerate(pairwise(ends), start=1))
        third = Evaluation(every_s=3 * period_s)
        looks = [number for number, span in enumerate(pairwise(ends), start=1) if third.is_due(number, *span)]
        assert looks == list(range(3, 201, 3))


def test_looks_are_counted_by_rounds_or_by_the_clock():
    with pytest.raises(ConfigError, match=r"every_s=60 counts .* got 2; write evaluation.every_s=null"):
        Evaluation(every=2, every_s=60.0)


def test_the_round_after_which_a_rule_stops_is_validated(tiny: Tiny):
    words = ("rounds=9", "evaluation.every=5", "evaluation.validation=true", "fleet=simulated", "stop=simulated_time")
    world = world_of(tiny(*words, "stop.minutes=0.03"))
    rows = [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]
    assert 1 < len(rows) < 5
    assert [row.get("validation_loss") is not None for row in rows] == [False] * (len(rows) - 1) + [True]
    assert [row.get("test_loss") is not None for row in rows] == [False] * (len(rows) - 1) + [True]


def test_clients_that_fail_are_dropped_and_told(tiny: Tiny, caplog: pytest.LogCaptureFixture):
    world = world_of(tiny("local.lr=1e38", "local.steps=5", "local.epochs=null", "local.batch_size=4"))
    with caplog.at_level(logging.WARNING):
        state, row, sent = run_round(world.exp, world, world.initial_state())
    assert not sent.delta.isfinite().all()
    assert row["aggregator.dropped"] == 3
    assert "3 of 3 updates are not finite" in caplog.text
    assert torch.equal(state.models[0].flat, world.first.flat)


def test_a_model_that_is_not_finite_ends_the_run_and_keeps_the_last_good_state(tiny: Tiny, tmp_path):
    words = ("server_optimizer=momentum", "server_optimizer.lr=3e38", "server_optimizer.beta=0.999", "rounds=300")
    config = tiny(*words, "aggregator=mifa")  # goes on by what it remembers, though no client sends finite numbers
    with pytest.raises(RunError, match="the global model is not finite after round"):
        run(config, tmp_path)
    saved = torch.load(tmp_path / "state.pt", weights_only=True)
    assert 1 <= saved["round"] < 300
    assert saved["models"][0][0].isfinite().all()


def test_local_buffers_stay_with_their_client(tiny: Tiny):
    world = world_of(
        tiny("model=complex_cnn", "model.buffers=local", "dataset.shape=[1,8,8]", "scenario.participants=2", "rounds=3")
    )
    parameters, kept, state = world.layout.parameters, {}, world.initial_state()
    while state.round < world.exp.rounds:
        state, _, sent = run_round(world.exp, world, state)
        for owner, delta in zip(sent.owner.tolist(), sent.delta, strict=True):
            before = kept.get(owner, world.first.flat[parameters:] if owner not in kept else None)
            held = state.memory["personal"]
            mine = held["rows"][held["owner"].tolist().index(owner)]
            if state.round == 1 or owner in kept:
                torch.testing.assert_close(mine, before + delta[parameters:])
            kept[owner] = mine
    assert len(kept) > 2


def test_validation_data_is_split_off_only_when_asked_for_and_never_trained_on(tiny: Tiny):
    without, needing = world_of(tiny()), world_of(tiny("stop=target"))
    assert without.validation is None
    assert len(without.partition.indices) == 120
    assert needing.validation is not None
    assert len(needing.validation) == 12
    _, held = split_validation(needing.exp, 120)
    assert sorted([*needing.partition.indices, *held]) == list(range(120))
    assert torch.equal(needing.validation.x, needing.train.x[torch.from_numpy(held)])


def test_a_share_that_a_float_rounds_down_loses_no_example(tiny: Tiny):
    exp = world_of(tiny("evaluation.validation=true", "evaluation.validation_fraction=0.29")).exp
    assert 0.29 * 100 < 29
    assert len(split_validation(exp, 100)[1]) == 29


def test_target_stops_on_validation_accuracy(tiny: Tiny, tmp_path):
    run(tiny("stop=target", "stop.value=0.0", "rounds=9"), tmp_path)
    assert (tmp_path / "metrics.csv").read_text().count("\n") == 2


def test_a_fraction_is_rounded_up(tiny: Tiny):
    world = world_of(tiny("selector.count=null", "selector.fraction=0.34"))
    assert len(world.exp.selector.choose({}, context.make_context(world, 1))[0].owner) == 3


def test_a_loss_that_is_not_finite_is_its_own_clients_alone(tiny: Tiny):
    world = world_of(tiny())
    plain = context.make_context(world, 1).losses(np.arange(6))
    world.train.x[world.partition.shard(2)[0]] = torch.inf
    spoiled = context.make_context(world, 1).losses(np.arange(6))
    assert not np.isfinite(spoiled[2])
    assert np.delete(spoiled, 2).tolist() == np.delete(plain, 2).tolist()


def test_measuring_exact_losses_changes_no_choice(tiny: Tiny):
    words = ("selector=afl", "selector.valuation_at=last_epoch", "selector.alpha2=50", "rounds=6", "local.epochs=2")
    words += ("local.batch_size=5",)  # with one batch an epoch the running loss would be the exact one
    plain, exact = (world_of(tiny(*words, f"evaluation.client_losses={kind}")) for kind in ("running", "exact"))
    for (_, ours, sent), (_, theirs, told) in zip(
        *(run_rounds(world.exp, world, world.initial_state()) for world in (plain, exact)), strict=True
    ):
        assert sent.owner.tolist() == told.owner.tolist()
        assert ours["train_loss"] == theirs["train_loss"]
        assert sent.exact is None
        assert told.exact is not None
        assert (told.exact[:, 0] != told.loss_before).any()


def test_what_a_part_reports_of_several_models_is_one_column():
    reports = {
        "0": {"kept": torch.ones(1), "columns": {"count": 2, "radius": 1.0, "late": None}},
        "1": {"columns": {"count": 3, "radius": 4.0, "late": None}},
        "2": {"columns": {"count": 0, "radius": None, "late": None, "own": 7}},
    }
    together = merge_memories(reports)
    assert together["columns"] == {"count": 5, "radius": 2.5, "late": None, "own": 7}
    assert together["0"].keys() == {"kept"}
    assert together["1"] == {}
    assert merge_memories({"0": {"columns": {"count": 2, "radius": None}}})["columns"] == {"count": 2, "radius": None}


def test_each_model_is_combined_from_its_own_rows(tiny: Tiny):
    world = world_of(tiny("aggregator=norm_clipping", "aggregator.radius=1"))
    models = tuple(Weights(world.first.flat * 0 + start, world.layout) for start in (0.0, 4.0, 9.0))
    delta = torch.zeros(5, world.layout.size)
    delta[:, 0] = torch.tensor([3.0, 8.0, 0.5, 0.5, 2.0])
    model, ones = np.array([0, 0, 1, 1, 1]), np.ones(5)
    uploads = Uploads(np.arange(5), model, np.full(5, 20), ones, delta, ones, ones)
    moved, memory = fold(world.exp, models, uploads, {}, context.make_context(world, 1), PendingChecks())
    steps = [(after.flat - before.flat)[0].item() for before, after in zip(models, moved, strict=True)]
    assert steps == pytest.approx([1, 2 / 3, 0])
    assert memory["aggregator"]["columns"] == {"dropped": 0, "radius": 1.0, "clipped": 3}
    assert memory["aggregator"]["0"] == {}


def test_buffers_of_a_training_that_is_not_finite_are_not_kept(tiny: Tiny):
    words = ("model=complex_cnn", "model.buffers=local", "dataset.shape=[1,8,8]", "local.lr=1e38", "local.epochs=3")
    world = world_of(tiny(*words))
    state, row, _ = run_round(world.exp, world, world.initial_state())
    assert row["aggregator.dropped"] == 3
    assert len(state.memory["personal"]["owner"]) == 0


def test_models_that_nothing_came_for_rest(tiny: Tiny):
    """Of three the second is given two rows; what is remembered and reported of the others is nobody's."""
    world = world_of(tiny("aggregator=krum", "server_optimizer=momentum", "scenario.byzantine=1"))
    models = tuple(Weights(world.first.flat + number, world.layout) for number in range(3))
    owner, ones = np.arange(4), np.ones(4)
    delta = torch.randn(4, world.layout.size, generator=torch.Generator().manual_seed(0))
    uploads = Uploads(owner, np.array([1, 1, 1, 1]), np.full(4, 9), ones, delta, ones, ones)
    following, memory = fold(world.exp, models, uploads, {}, context.make_context(world, 1), PendingChecks())
    assert [after is before for after, before in zip(following, models, strict=True)] == [True, False, True]
    alone, one = fold(
        world.exp, models[1:2], replace(uploads, model=owner * 0), {}, context.make_context(world, 1), PendingChecks()
    )
    assert torch.equal(alone[0].flat, following[1].flat)
    assert one["aggregator"]["columns"] == memory["aggregator"]["columns"]
    assert memory["server_optimizer"].keys() - {"columns"} == {"1"}
    again, later = fold(
        world.exp, following, uploads.where(owner[:0]), memory, context.make_context(world, 2), PendingChecks()
    )
    assert again[0] is following[0]
    assert later["server_optimizer"].keys() - {"columns"} == {"1", "2"}


def test_which_models_move():
    assert models_to_update(4, np.array([3, 1, 3])) == [1, 3]
    assert models_to_update(4, np.zeros(0, np.int64)) == [1, 2, 3]
    assert models_to_update(1, np.zeros(0, np.int64)) == models_to_update(1, np.zeros(2, np.int64)) == [0]
