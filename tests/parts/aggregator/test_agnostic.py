"""Agnostic learning by hand: the projection, a round, the limit without a rate."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.parts.aggregator.agnostic import project_to_simplex

TWO = ("algorithm=agnostic", "scenario.clients=2", "scenario.participants=2")


def test_the_projection_by_hand():
    assert project_to_simplex(np.array([0.6, 0.8])) == pytest.approx([0.4, 0.6])
    assert project_to_simplex(np.array([0.1, 2.0])) == pytest.approx([0.0, 1.0])
    assert project_to_simplex(np.array([0.2, 0.3, 0.5])) == pytest.approx([0.2, 0.3, 0.5])
    assert project_to_simplex(np.array([1e17, 0.5])).tolist() == [1.0, 0.0]


@pytest.mark.law("aggregator=agnostic", "the mixture is projected to the nearest point of the simplex")
@pytest.mark.parametrize("seed", range(5))
def test_no_point_of_the_simplex_is_closer(seed: int):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=4)
    ours = project_to_simplex(values)
    assert ours.sum() == pytest.approx(1)
    assert ours.min() >= 0
    others = rng.dirichlet(np.ones(4), size=500)
    assert (np.square(others - values).sum(axis=1) >= np.square(ours - values).sum() - 1e-12).all()


def test_two_rounds_by_hand(tiny: Tiny):
    """The mixture (1/2, 1/2) moves by 0.1 * (1, 3) to (0.6, 0.8), projected (0.4, 0.6), which the next round uses."""
    world = world_of(tiny(*TWO, "aggregator.lr=0.1"))
    rows = torch.stack([torch.ones(world.layout.size), torch.zeros(world.layout.size)])
    uploads = replace(uploads_like(rows), exact=np.array([[1.0, 0.0], [3.0, 0.0]]))
    model, memory = folded(world, uploads)
    torch.testing.assert_close(model - world.first.flat, torch.full_like(model, 0.5), atol=1e-6, rtol=0)
    assert memory["aggregator"]["0"]["mixture"].tolist() == pytest.approx([0.4, 0.6])
    model, memory = folded(world, uploads, memory)
    torch.testing.assert_close(model - world.first.flat, torch.full_like(model, 0.4), atol=1e-6, rtol=0)
    assert memory["aggregator"]["0"]["mixture"].tolist() == pytest.approx([0.3, 0.7])


def test_some_of_the_clients_by_hand(tiny: Tiny):
    """Of (1/3, 1/3, 1/3) client 0 gains 0.3 and all lose 0.1; then 0 and 2 share as 0.5333 to 0.2333."""
    world = world_of(tiny("algorithm=agnostic", "scenario.clients=3", "scenario.participants=2", "aggregator.lr=0.3"))
    rows = torch.stack([torch.ones(world.layout.size), torch.zeros(world.layout.size)])
    model, memory = folded(world, replace(uploads_like(rows), exact=np.array([[1.0, 0.0], [0.0, 0.0]])))
    torch.testing.assert_close(model - world.first.flat, torch.full_like(model, 0.5), atol=1e-6, rtol=0)
    assert memory["aggregator"]["0"]["mixture"].tolist() == pytest.approx([1.6 / 3, 0.7 / 3, 0.7 / 3])
    model, _ = folded(world, replace(uploads_like(rows, [0, 2]), exact=np.zeros((2, 2))), memory)
    torch.testing.assert_close(model - world.first.flat, torch.full_like(model, 1.6 / 2.3), atol=1e-6, rtol=0)


def test_clients_that_weigh_nothing_leave_the_model_though_the_servers_optimizer_remembers(tiny: Tiny):
    world = world_of(tiny("algorithm=agnostic", "server_optimizer=momentum", "scenario.clients=3", *TWO[2:]))
    rows = torch.stack([torch.ones(world.layout.size), torch.zeros(world.layout.size)])
    uploads = replace(uploads_like(rows), exact=np.array([[1.0, 0.0], [3.0, 0.0]]))
    model, memory = folded(world, uploads)
    assert not torch.equal(model, world.first.flat)
    memory["aggregator"]["0"]["mixture"] = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    assert torch.equal(folded(world, uploads, memory)[0], world.first.flat)  # from which it starts in either round


@pytest.mark.law("aggregator=agnostic", "lr = 0 is the mean, to the byte, and the mixture stays uniform")
def test_without_a_rate_it_is_the_mean(tiny: Tiny):
    ours, plain = world_of(tiny(*TWO, "aggregator.lr=0")), world_of(tiny("aggregator.weighting=uniform", *TWO[1:]))
    rows = torch.linspace(-1, 1, 2 * ours.layout.size).reshape(2, -1)
    uploads = replace(uploads_like(rows), exact=np.array([[1.0, 0.0], [3.0, 0.0]]))
    model, memory = folded(ours, uploads)
    _, memory = folded(ours, uploads, memory)
    assert torch.equal(model, folded(plain, uploads)[0])
    assert memory["aggregator"]["0"]["mixture"].tolist() == [0.5, 0.5]


@pytest.mark.law("aggregator=agnostic", "clients whose losses are not finite do not count")
@pytest.mark.law("aggregator=qfedavg", "clients whose losses are not finite do not count")
@pytest.mark.law("aggregator=term", "clients whose losses are not finite do not count")
@pytest.mark.parametrize("algorithm", ["qfedavg", "term", "agnostic"])
@pytest.mark.parametrize("loss", [np.inf, np.nan])
def test_who_reports_no_finite_loss_does_not_count(tiny: Tiny, algorithm: str, loss: float):
    world = world_of(tiny(f"algorithm={algorithm}", *TWO[1:]))
    rows = torch.stack([torch.ones(world.layout.size), torch.full((world.layout.size,), 9.0)])
    both, none = np.array([[1.0, 0.0], [loss, 0.0]]), np.full((2, 2), loss)
    alone = uploads_like(rows[:1])
    model, _ = folded(world, replace(uploads_like(rows), exact=both))
    torch.testing.assert_close(model, folded(world, replace(alone, exact=both[:1]))[0])
    assert torch.equal(folded(world, replace(uploads_like(rows), exact=none))[0], world.first.flat)
