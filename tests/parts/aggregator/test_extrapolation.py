"""FedExP by hand, and where it is FedAvg."""

import pytest
import torch
from worlds import Tiny, folded, rounds_with_rows, uploads_like, world_of


def test_by_hand(tiny: Tiny):
    """Along the first entry 2 and -1, along the second 1 and 1: squares 5 and 2, mean (1/2, 1) of square 5/4."""
    world = world_of(tiny("algorithm=fedexp", "aggregator.eps=0.5"))
    rows = torch.zeros(2, world.layout.size)
    rows[:, :2] = torch.tensor([[2.0, 1.0], [-1.0, 1.0]])
    model, memory = folded(world, uploads_like(rows))
    rate = 3.5 / (2 * (1.25 + 0.5))
    assert memory["aggregator"]["columns"]["rate"] == pytest.approx(max(1, rate))
    rows[1, 1] = -1  # squares 5 and 2, mean (1/2, 0) of square 1/4
    model, memory = folded(world, uploads_like(rows))
    rate = 3.5 / (2 * (0.25 + 0.5))
    assert memory["aggregator"]["columns"]["rate"] == pytest.approx(rate)
    torch.testing.assert_close((model - world.first.flat)[:2], torch.tensor([rate / 2, 0.0]))


@pytest.mark.law("aggregator=extrapolation", "of equal updates the rate is 1 and the step FedAvg's, to the byte")
def test_equal_updates_are_averaged_as_they_are(tiny: Tiny):
    ours, plain = world_of(tiny("algorithm=fedexp")), world_of(tiny("aggregator.weighting=uniform"))
    rows = torch.linspace(-1, 1, ours.layout.size).expand(3, -1)
    model, memory = folded(ours, uploads_like(rows))
    assert torch.equal(model, folded(plain, uploads_like(rows))[0])
    assert memory["aggregator"]["columns"]["rate"] == 1


def test_nobody_came(tiny: Tiny):
    world = world_of(tiny("algorithm=fedexp"))
    model, memory = folded(world, uploads_like(torch.zeros(0, world.layout.size)))
    assert torch.equal(model, world.first.flat)
    assert memory["aggregator"]["columns"]["rate"] is None


@pytest.mark.law("aggregator=extrapolation", "the step is the mean of the updates times the rate")
def test_the_weights_are_those_of_the_mean(tiny: Tiny):
    """Of a run whose clients disagree the step is the mean of its shares, times the rate."""
    world = world_of(tiny("algorithm=fedexp", "aggregator.weighting=num_samples", "federation=dirichlet", "rounds=2"))
    before = world.first.flat
    for state, row, sent in rounds_with_rows(world):
        share = torch.from_numpy(sent.examples / sent.examples.sum())
        mean = (share[:, None] * sent.delta.double()).sum(dim=0)
        torch.testing.assert_close(
            (state.models[0].flat - before).double(), row["aggregator.rate"] * mean, rtol=1e-4, atol=1e-6
        )
        before = state.models[0].flat
