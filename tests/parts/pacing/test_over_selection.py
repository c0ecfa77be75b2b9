"""More clients are asked than count: who is first, worked out with a pencil, and what a round then costs."""

from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core.client_resources import Journeys
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Plan
from fedexp.parts.context import Context
from fedexp.parts.pacing.over_selection import OverSelection, never_arrives
from fedexp.simulation import context
from fedexp.simulation.setup.compatibility import refuse
from fedexp.simulation.start import start
from fedexp.simulation.world import World

WORDS = ("rounds=20", "scenario.participants=4", "fleet=simulated", "fleet.link=own")
OVER = "pacing=over_selection"
# Each client has 20 examples, and a model of 10 Mbit: links of 1, 2, 5, 10, 10 and 1 Mbit/s, down and up.
# client          0      1      2      3      4      5
# model down     10 s    5 s    2 s    1 s    1 s   10 s
# 20 examples     1 s    5 s    4 s   20 s    6 s    2 s
# ready          11 s   10 s    6 s   21 s    7 s   12 s
# arrived        21 s   15 s    8 s   22 s    8 s   22 s
BANDWIDTH = (1.0, 2.0, 5.0, 10.0, 10.0, 1.0)
SPEED = (20.0, 4.0, 5.0, 1.0, 20 / 6, 10.0)


def traced(tiny: Tiny, folder: Path, *words: str) -> World:
    """A world of the six clients above."""
    lines = [f"{client},1,{BANDWIDTH[client]},{SPEED[client]}" for client in range(6)]
    trace = folder / "trace.csv"
    trace.write_text("client,round,bandwidth_mbit,compute_samples_per_s\n" + "\n".join(lines) + "\n")
    world = world_of(tiny(*WORDS, f"fleet.trace={trace}", "local.epochs=1", OVER, *words))
    assert world.partition.sizes.tolist() == [20] * 6
    for client, megabit in enumerate(BANDWIDTH):  # a model of 10 Mbit, whatever its layout
        scale = 10e6 / context.make_context(world, 1).traffic.download_bits
        lines[client] = f"{client},1,{megabit / scale},{SPEED[client]}"
    trace.write_text("client,round,bandwidth_mbit,compute_samples_per_s\n" + "\n".join(lines) + "\n")
    return world_of(tiny(*WORDS, f"fleet.trace={trace}", "local.epochs=1", OVER, *words))


def counted(world: World, asked: list[int], uploads: int) -> tuple[list[int], int]:
    """Who counts of those that are asked, and how many are thrown away."""
    ctx = context.make_context(world, 1)
    plan = ctx.plan(np.array(asked))
    arrivals, memory = OverSelection(uploads=uploads).due(plan, world.first, {}, ctx)
    assert arrivals.began is plan.owner
    assert arrivals.begun.tolist() == [1] * len(arrivals.plan.owner)
    return arrivals.plan.owner.tolist(), memory["columns"]["thrown_away"]


def test_the_first_to_arrive_count_in_the_order_of_the_plan(tiny: Tiny, tmp_path: Path):
    world = traced(tiny, tmp_path)
    everybody = [5, 4, 3, 2, 1, 0]
    assert counted(world, everybody, 1) == ([2], 5)  # 2 and 4 arrive together
    assert counted(world, everybody, 3) == ([4, 2, 1], 3)
    assert counted(world, everybody, 4) == ([4, 2, 1, 0], 2)
    assert counted(world, everybody, 5) == ([4, 3, 2, 1, 0], 1)  # 3 and 5 arrive together
    assert counted(world, [5, 3], 5) == ([5, 3], 0)


def test_on_a_shared_link_whoever_is_ready_first_counts(tiny: Tiny, tmp_path: Path):
    world = traced(tiny, tmp_path, "fleet.link=shared")
    assert counted(world, [0, 1, 3, 5], 3) == ([0, 1, 5], 1)
    assert counted(world, [0, 1, 3, 5], 1) == ([1], 3)


@pytest.mark.law(
    "pacing=over_selection",
    "a round lasts until the last upload that counts, and all that were asked were sent the model",
)
def test_a_round_lasts_until_the_last_that_counts_and_all_are_sent_the_model(tiny: Tiny, tmp_path: Path):
    world = traced(tiny, tmp_path, "scenario.participants=6", "pacing.uploads=3")
    size = world.layout.size * 4 / 1e6
    for state, row, sent in islice(rounds_with_rows(world), 3):
        assert sorted(sent.owner.tolist()) == [1, 2, 4]  # so the others are free again, and never first
        assert row["sim_s"] == pytest.approx(15 * state.round)
        assert (row["participants"], row["pacing.thrown_away"]) == (3, 3)
        assert (row["mb_down"], row["mb_up"]) == pytest.approx((6 * size, 3 * size))


def test_the_servers_own_row_counts_and_takes_no_place(tiny: Tiny, tmp_path: Path):
    world = traced(tiny, tmp_path)
    ctx = context.make_context(world, 1)
    plan = Plan(np.array([0, SERVER, 4]), (np.arange(3), np.arange(5), np.arange(4)), np.array([1.0, 2.0, 3.0]), 60.0)
    (arrivals, _) = OverSelection(uploads=1).due(plan, world.first, {}, ctx)
    assert arrivals.plan.owner.tolist() == [SERVER, 4]
    assert [len(shard) for shard in arrivals.plan.shards] == [5, 4]
    assert (arrivals.plan.importance.tolist(), arrivals.plan.deadline_s) == ([2.0, 3.0], 60.0)  # pyright: ignore[reportOptionalMemberAccess]


def test_somebody_who_drops_out_is_replaced(tiny: Tiny):
    words = (*WORDS, "scenario.clients=12", "scenario.participants=8", "fleet.dropout=0.4")
    rows, plain = (
        [row for _, row, _ in islice(rounds_with_rows(world_of(tiny(*words, *more))), 15)]
        for more in ((OVER, "pacing.uploads=3"), ("scenario.participants=3",))
    )
    assert sum(row["fleet.dropped_out"] for row in rows) < sum(row["fleet.dropped_out"] for row in plain) / 3


def told(tiny: Tiny, *words: str) -> list[tuple[dict, torch.Tensor]]:
    timings = ("select_s", "train_s", "aggregate_s", "selector.shapley_s", "pacing.thrown_away")
    rounds = islice(rounds_with_rows(world_of(tiny(*words))), 4)
    return [({k: v for k, v in row.items() if k not in timings}, state.models[0].flat) for state, row, _ in rounds]


RULES = {
    "shared": ("fleet.link=shared", "fleet.dropout=0.3", "fleet.deadline_s=20"),
    "scaffold": ("local=scaffold",),
    "ifca": ("clustering=ifca",),
    "shapley": ("selector=greedyfed",),
    "candidates": ("selector=power_of_choice",),
    "examples": ("selector=hybridfl", "selector.round_s=0.9", "selector.upload_permission=1"),
}


@pytest.mark.law("pacing=over_selection", "as many uploads as are asked are a synchronous run, to the byte")
@pytest.mark.parametrize("words", RULES.values(), ids=RULES)
def test_as_many_uploads_as_are_asked_are_a_synchronous_round(tiny: Tiny, words: tuple[str, ...]):
    synchronous, over = told(tiny, *WORDS, *words), told(tiny, *WORDS, *words, OVER, "pacing.uploads=6")
    for (row, model), (other_row, other) in zip(synchronous, over, strict=True):
        assert row == other_row
        assert torch.equal(model, other)


def test_a_client_keeps_the_model_of_its_cluster(tiny: Tiny):
    words = (*WORDS, "clustering=ifca", "scenario.participants=6")
    plain, over = (world_of(tiny(*words, *more)) for more in ((), (OVER, "pacing.uploads=3")))
    seen = set()
    for state, *_ in islice(rounds_with_rows(plain), 3):
        full, kept = (
            start(world.exp, world, state, context.begin_round(world.exp, world, state))[0] for world in (plain, over)
        )
        by_client = dict(zip(full.owner.tolist(), full.model.tolist(), strict=True))
        assert [by_client[client] for client in kept.owner.tolist()] == kept.model.tolist()
        assert len(kept.owner) == 3
        seen |= set(kept.model.tolist())
    assert len(seen) > 1


def test_privacy_of_clients_is_counted_without_amplification(tiny: Tiny):
    central = ("privacy=client_central", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    words = (*WORDS, *central, "aggregator.weighting=uniform", "scenario.participants=2")
    rates = [world_of(tiny(*words, *more)).exp.privacy.rate for more in ((), (OVER, "pacing.uploads=1"))]  # pyright: ignore[reportAttributeAccessIssue]
    assert rates == [pytest.approx(1 / 3), 1]


def test_nobody_is_first_where_all_are_equally_fast(tiny: Tiny):
    from fedexp.core import part as spec

    with pytest.raises(ConfigError, match="pacing=over_selection counts the uploads that come first, but fleet=none"):
        refuse(spec.build(tiny(OVER)))


def test_somebody_who_would_go_before_delivering_is_not_among_the_first(tiny: Tiny, tmp_path: Path):
    """Clients 2 and 4 arrive after 8 s; 2 goes after 7."""
    windows = tmp_path / "windows.csv"
    windows.write_text("client,from_s,to_s\n" + "\n".join(f"{client},0,{[99, 7][client == 2]}" for client in range(6)))
    words = ("scenario.participants=6", "pacing.uploads=2", "availability=trace", f"availability.path={windows}")
    rows = [(row, sent.owner.tolist()) for _, row, sent in islice(rounds_with_rows(traced(tiny, tmp_path, *words)), 1)]
    assert [(row["sim_s"], sorted(owner)) for row, owner in rows] == [(pytest.approx(15), [1, 4])]
    stays = islice(rounds_with_rows(traced(tiny, tmp_path, *words, "availability.interrupts=false")), 1)
    assert [(row["sim_s"], sorted(sent.owner.tolist())) for _, row, sent in stays] == [(pytest.approx(8), [2, 4])]


def test_who_stays_as_long_as_judging_and_its_own_way_take_arrives():
    """It takes 1 + 2 + 4 s to deliver, after 3 s in which models are judged."""
    one = np.ones(3)
    journeys = Journeys(one, 2 * one, 4 * one, np.array([False, False, True]))
    fleet = SimpleNamespace(stays_s=lambda _: np.array([10.0, 9.9, 99.0]), judging_s=3.0)
    ctx = cast(Context, SimpleNamespace(fleet=fleet))
    assert never_arrives(np.arange(3), journeys, ctx).tolist() == [False, True, True]


def test_somebody_who_breaks_off_is_replaced(tiny: Tiny):
    words = (*WORDS, "scenario.clients=12", "fleet.dropout=0.4", "fleet.dropout_in=both")
    rows, plain = (
        [row for _, row, _ in islice(rounds_with_rows(world_of(tiny(*words, *more))), 15)]
        for more in ((OVER, "pacing.uploads=3", "scenario.participants=8"), ("scenario.participants=3",))
    )
    assert sum(row["fleet.dropped_out"] for row in rows) < sum(row["fleet.dropped_out"] for row in plain) / 3
