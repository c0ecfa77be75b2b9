from dataclasses import replace

import numpy as np
import pytest
from stages import Stage, play

from fedexp.core import part as spec
from fedexp.core.client_resources import Resources
from fedexp.core.errors import ConfigError
from fedexp.core.values import Memory
from fedexp.parts.selector.dyn_hybridfl import DynHybridFL, slowness
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.training.workers.pool import WorkerPool


def stage_of(update: list[float], upload: list[float]) -> Stage:
    machines = Resources(1 / np.array(upload), np.ones(len(update)), np.array(update), 1e6)
    clients = len(update)
    return Stage(np.full(clients, 10), machines=machines, counts=np.ones((clients, 2), int), permits=np.ones(clients))


def test_three_rounds_by_hand():
    # phi: 3 + 1 = 4, then 6 + 2 = 8, then 2 + 1 = 3
    stages = [stage_of([2, 4], [1, 1]), stage_of([5, 7], [2, 2]), stage_of([1, 3], [1, 1])]
    _, memories = play(DynHybridFL(candidates=2, round_s=100.0), stages)
    assert [memory["columns"]["deadline_s"] for memory in memories] == [100.0, 200.0, 75.0]
    assert all(memory["phi"] == 4.0 for memory in memories)


def test_clamps_hold_the_deadline_but_not_what_follows():
    stages = [stage_of([2, 4], [1, 1]), stage_of([5, 7], [2, 2]), stage_of([1, 3], [1, 1]), stage_of([2, 4], [1, 1])]
    _, memories = play(DynHybridFL(candidates=2, round_s=100.0, shortest_s=80.0, longest_s=150.0), stages)
    assert [memory["columns"]["deadline_s"] for memory in memories] == [100.0, 150.0, 80.0, 100.0]


def test_the_first_deadline_is_not_clamped():
    stages = [stage_of([2, 4], [1, 1])] * 2
    _, memories = play(DynHybridFL(candidates=2, round_s=100.0, shortest_s=120.0), stages)
    assert [memory["columns"]["deadline_s"] for memory in memories] == [100.0, 120.0]


def test_the_deadline_is_kept_when_nobody_is_chosen():
    never = stage_of([500, 700], [2, 2])
    owners, memories = play(DynHybridFL(candidates=2, round_s=1.0), [stage_of([2, 4], [1, 1]), never])
    assert owners == [[], []]
    assert memories[1]["columns"]["deadline_s"] == pytest.approx(602 / 4)


@pytest.mark.law(
    "selector=dyn_hybridfl",
    "without bounds a deadline is the first one times how slow the candidates are, over the first ones",
)
def test_telescopes_to_the_first_rounds_draw_in_a_run(tiny):
    world = build_world(
        spec.build(tiny("selector=dyn_hybridfl", "fleet=simulated", "selector.round_s=9")), None, WorkerPool()
    )
    memory: Memory = {}
    previous: tuple[float, float] | None = None
    for number in range(1, 9):
        ctx = context.make_context(world, number)
        plan, memory = world.exp.selector.choose(memory, ctx)
        candidates = memory["columns"]["candidates"]
        assert candidates == 3
        phi = phi_of(ctx, world)
        assert plan.deadline_s is not None
        if previous is not None:
            assert plan.deadline_s == pytest.approx(previous[0] * phi / previous[1])  # the published recursion
        assert plan.deadline_s == pytest.approx(9 * phi / memory["phi"])
        previous = (plan.deadline_s, phi)


def phi_of(ctx, world) -> float:
    from fedexp.parts.selector.random import sample_clients

    return slowness(
        ctx.fleet.resources(sample_clients(ctx.clients, world.exp.selector.candidates, ctx.rng("selector")))
    )


def test_clamps_the_wrong_way_round_are_refused(tiny):
    with pytest.raises(ConfigError, match=r"selector\.shortest_s must be at most longest_s=5, got 6"):
        spec.build(tiny("selector=dyn_hybridfl", "selector.shortest_s=6", "selector.longest_s=5"))


def test_slowness_by_hand():
    machines = stage_of([2, 4], [1, 2]).machines
    assert machines is not None
    assert slowness(machines) == pytest.approx(4.5)
    assert replace(machines, overhead_s=9.0).overhead_s == 9.0
