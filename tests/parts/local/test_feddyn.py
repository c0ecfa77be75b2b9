"""FedDyn: its fixed point on two quadratics, what the server's memory is, and its limits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import Tiny, rounds_with_rows, uploads_like, world_of

from fedexp.core.values import Trained, Weights
from fedexp.parts.aggregator.feddyn import DynamicMean
from fedexp.simulation import context
from fedexp.simulation.world import World

CURVATURES, MINIMA = torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0, 1.0], [4.0, -1.0]])


def descend(world: World, rule: str, rounds: int) -> torch.Tensor:
    """The first two entries after rounds in which both clients descend their quadratic to the end."""
    local, aggregator, owner = world.exp.local, world.exp.aggregator, np.array([0, 1])
    weights, memory, server = Weights(world.first.flat * 0, world.layout), {}, {}
    for number in range(1, rounds + 1):
        ctx, received = context.make_context(world, number), weights.flat.expand(2, -1)
        start, anchor = local.begin(received, owner, memory, ctx)
        rows = start.clone()
        for _ in range(300):
            gradients = torch.zeros_like(rows)
            gradients[:, :2] = CURVATURES * (rows[:, :2] - MINIMA)
            local.update(rows, local.direction(gradients, rows, anchor), torch.zeros(0), torch.tensor(1.0), None)
        sent, memory = local.finish(Trained(owner, owner * 0 + 300, received, start, rows), memory, ctx)
        uploads = uploads_like(sent)
        memory = local.receive(uploads, memory, ctx)
        weights, server = aggregator.combine(weights, uploads, server, ctx)
        if rule == "feddyn":
            correction = -local.alpha * server["correction"]  # pyright: ignore[reportAttributeAccessIssue]
            torch.testing.assert_close(correction, memory["rows"].mean(dim=0), atol=1e-5, rtol=0)
    return weights.flat[:2]


def two(tiny: Tiny, *words: str) -> World:
    return world_of(tiny(*words, "scenario.clients=2", "scenario.participants=2", "local.lr=0.1"))


@pytest.mark.law(
    "local=feddyn", "two quadratics end at their joint optimum (3, -0.5), to 0.001, where FedAvg ends at (2, 0)"
)
@pytest.mark.law(
    "aggregator=feddyn", "two quadratics end at their joint optimum (3, -0.5), to 0.001, where FedAvg ends at (2, 0)"
)
def test_two_quadratics_end_at_their_joint_optimum(tiny: Tiny):
    """Curvatures 1 and 3, minima (0, 1) and (4, -1): (3, -0.5); FedAvg ends between the minima, at (2, 0)."""
    ours = descend(two(tiny, "algorithm=feddyn", "local.alpha=1"), "feddyn", 60)
    assert ours.tolist() == pytest.approx([3, -0.5], abs=1e-3)
    fedavg = descend(two(tiny, "aggregator.weighting=uniform"), "fedavg", 3)
    assert fedavg.tolist() == pytest.approx([2, 0], abs=1e-4)


@pytest.mark.law("local=feddyn", "alpha = 0 is FedAvg with equal weights, to the byte")
def test_alpha_0_is_fedavg_with_equal_weights(tiny: Tiny):
    ours, plain = (
        [state.models[0].flat for state, *_ in rounds_with_rows(world_of(tiny(*words)))]
        for words in (["algorithm=feddyn", "local.alpha=0"], ["aggregator.weighting=uniform"])
    )
    for one, other in zip(ours, plain, strict=True):
        assert torch.equal(one, other)


@pytest.mark.law(
    "aggregator=feddyn", "h is the mean of all g_k at all times, and g_k is 0 of clients that were never asked"
)
def test_the_server_remembers_the_mean_of_what_all_clients_do(tiny: Tiny):
    """Of those that were never asked it is 0."""
    world = world_of(tiny("algorithm=feddyn", "local.alpha=0.1", "rounds=4", "scenario.participants=2"))
    for state, *_ in rounds_with_rows(world):
        kept, clients = state.memory["local"]["rows"], world.partition.clients
        h = -0.1 * state.memory["aggregator"]["0"]["correction"]
        torch.testing.assert_close(h, kept.sum(dim=0) / clients, atol=1e-5, rtol=0)


def test_a_step_by_hand(tiny: Tiny):
    """x = 0, g = 0.5, alpha = 0.5: the gradient at w = 2 gains 0.5 (2 - 0 - 1) = 0.5; from 0 to 3 g becomes -1."""
    world = two(tiny, "local=feddyn", "local.alpha=0.5")
    rule, ctx, received = world.exp.local, context.make_context(world, 1), world.first.flat[None] * 0
    memory = {"owner": torch.tensor([1]), "rows": torch.full((1, world.layout.parameters), 0.5)}
    _, anchor = rule.begin(received, np.array([1]), memory, ctx)
    assert rule.direction(anchor * 0, anchor * 0 + 2, anchor)[0, 0] == 0.5
    trained = Trained(np.array([1]), np.array([1]), received, received, received + 3)
    sent, after = rule.finish(trained, memory, ctx)
    heard = uploads_like(sent, [1])
    assert rule.receive(heard, after, ctx)["rows"][0, 0] == 0.5 - 0.5 * 3
    lost = rule.receive(heard.where(np.arange(0)), after, ctx)
    assert lost.keys() == {"owner", "rows"}
    assert lost["rows"][0, 0] == 0.5


LOSSES = {
    "dropouts": ("fleet=simulated", "fleet.dropout=0.4"),
    "a deadline": ("fleet=simulated", "fleet.deadline_s=0.6"),
    "absences": ("fleet=simulated", "availability=markov", "availability.redraw_s=3"),
    "over-selection": ("fleet=simulated", "pacing=over_selection", "pacing.uploads=2"),
    "infinite messages": ("attack=gaussian", "attack.std=3e38", "scenario.malicious=2"),
}


@pytest.mark.law("aggregator=feddyn", "h stays the mean of all g_k when uploads are late, lost or not finite")
@pytest.mark.parametrize("words", LOSSES.values(), ids=LOSSES)
def test_the_servers_memory_stays_the_mean_whatever_is_lost(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny("algorithm=feddyn", "local.alpha=0.1", "rounds=6", "scenario.participants=4", *words))
    lost = 0
    for state, row, _ in rounds_with_rows(world):
        columns = state.memory["aggregator"].get("0", {})
        kept = state.memory["local"]["rows"]
        h = -0.1 * columns.get("correction", kept.new_zeros(kept.shape[1]))
        torch.testing.assert_close(h, kept.sum(dim=0) / world.partition.clients, atol=1e-5, rtol=0)
        lost += row["participants"] < 4 or row["aggregator.dropped"] > 0 or (row.get("fleet.dropped_out") or 0) > 0
        lost += (row.get("fleet.late") or 0) > 0
    assert lost


def test_the_server_by_hand(tiny: Tiny):
    """Two of three clients sent 1 and 3: h = -alpha 4/3, so the step is 2 + 4/3; nobody comes, nothing moves."""
    world = world_of(tiny("scenario.clients=3"))
    ctx, weights, rule = context.make_context(world, 1), world.first, DynamicMean(alpha=0.1)
    rows = torch.ones(2, world.layout.size) * torch.tensor([[1.0], [3.0]])
    after, memory = rule.combine(weights, uploads_like(rows), {}, ctx)
    torch.testing.assert_close(after.flat, weights.flat + 2 + 4 / 3)
    unmoved, kept = rule.combine(after, uploads_like(rows[:0]), memory, ctx)
    assert torch.equal(unmoved.flat, after.flat)
    assert kept is memory


def test_importance_weighs_the_mean_and_not_the_memory(tiny: Tiny):
    """Of 1 and 3 the second counts a quarter: the mean is 1.4, and h = -alpha 4/3 as before."""
    world = world_of(tiny("scenario.clients=3"))
    ctx, weights, rule = context.make_context(world, 1), world.first, DynamicMean(alpha=0.1)
    uploads = uploads_like(torch.ones(2, world.layout.size) * torch.tensor([[1.0], [3.0]]))
    after, memory = rule.combine(weights, replace(uploads, importance=np.array([1, 0.25])), {}, ctx)
    torch.testing.assert_close(memory["correction"], torch.full_like(memory["correction"], 4 / 3))
    torch.testing.assert_close(after.flat, weights.flat + 1.4 + 4 / 3)


def test_groups_of_a_round_and_lost_uploads(tiny: Tiny):
    """Two groups are finished one after the other; the upload of client 4 is lost."""
    world = world_of(tiny("algorithm=feddyn", "local.alpha=0.5"))
    ctx, memory = context.make_context(world, 1), {}
    for owner in (np.array([3, 4]), np.array([0])):
        received = world.first.flat.expand(len(owner), -1)
        trained = Trained(owner, owner * 0 + 1, received, received, received + 1.0 + owner[0])
        _, memory = world.exp.local.finish(trained, memory, ctx)
    memory = world.exp.local.receive(uploads_like(torch.zeros(2, world.layout.size), [3, 0]), memory, ctx)
    assert memory.keys() == {"owner", "rows"}
    assert memory["owner"].tolist() == [0, 3]
    torch.testing.assert_close(memory["rows"][:, 0], -0.5 * torch.tensor([1.0, 4.0]))
