"""q-FedAvg by hand, against the paper's own quantities, and where it is the mean."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.core.errors import RunError
from fedexp.parts.aggregator.qfedavg import QFedAvg, fair_weights


def test_by_hand():
    """q = 1, L = 2, losses 1 and 3, squares 1 and 4: 1 + 2 * 1 = 3 and 3 + 2 * 4 = 11, so weights 1/14 and 3/14."""
    weights = fair_weights(np.array([1.0, 3.0]), np.array([1.0, 4.0]), np.ones(2), 1.0, 0.5)
    assert weights == pytest.approx([1 / 14, 3 / 14])


@pytest.mark.law(
    "aggregator=qfedavg", "the step is the sum of F^q Delta over the sum of q F^(q-1) times Delta squared plus L F^q"
)
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0])
def test_the_step_is_the_papers(q: float, tiny: Tiny):
    """Delta_k = -L d_k, h_k = q F^(q-1) |Delta_k|^2 + L F^q, w - sum_k F^q Delta_k / sum_k h_k."""
    world = world_of(tiny("algorithm=qfedavg", f"aggregator.q={q}", "aggregator.lr=0.25"))
    rows, losses = torch.zeros(3, world.layout.size), np.array([0.5, 2.0, 1.0])
    rows[:, :2] = torch.tensor([[1.0, 0.0], [-1.0, 2.0], [0.5, 0.5]])
    uploads = replace(uploads_like(rows), exact=np.stack([losses, losses / 2], axis=1))
    delta = -4 * rows.double().numpy()
    heights = q * losses ** (q - 1) * (delta**2).sum(axis=1) + 4 * losses**q
    step = -(losses[:, None] ** q * delta).sum(axis=0) / heights.sum()
    model, _ = folded(world, uploads)
    np.testing.assert_allclose((model - world.first.flat)[:2].numpy(), step[:2], rtol=1e-5, atol=1e-6)


@pytest.mark.law("aggregator=qfedavg", "q = 0 is the mean, to the byte")
def test_with_q_0_it_is_the_mean_to_the_bit(tiny: Tiny):
    ours = world_of(tiny("algorithm=qfedavg", "aggregator.q=0"))
    plain = world_of(tiny("aggregator.weighting=uniform"))
    rows = torch.linspace(-1, 1, 3 * ours.layout.size).reshape(3, -1)
    uploads = replace(uploads_like(rows), exact=np.array([[1.0, 1.0], [5.0, 1.0], [0.0, 1.0]]))
    assert torch.equal(folded(ours, uploads)[0], folded(plain, uploads)[0])


def test_nobody_came(tiny: Tiny):
    world = world_of(tiny("algorithm=qfedavg"))
    assert torch.equal(folded(world, uploads_like(torch.zeros(0, world.layout.size)))[0], world.first.flat)


@pytest.mark.law("aggregator=qfedavg", "with a huge q the client with the largest loss counts alone")
def test_large_powers_do_not_overflow_and_negative_losses_are_refused(tiny: Tiny):
    weights = fair_weights(np.array([1e3, 1e2]), np.array([0.0, 0.0]), np.ones(2), 400.0, 0.1)
    assert weights == pytest.approx([1, 0])
    world = world_of(tiny("algorithm=qfedavg"))
    uploads = replace(uploads_like(torch.ones(1, world.layout.size)), exact=np.array([[-0.5, 0.0]]))
    with pytest.raises(RunError, match=r"^aggregator=qfedavg takes powers of losses, .* got -0.5"):
        folded(world, uploads)


def test_the_bundle_takes_the_clients_own_rate(tiny: Tiny):
    aggregator = world_of(tiny("algorithm=qfedavg", "local.lr=0.5")).exp.aggregator
    assert isinstance(aggregator, QFedAvg)
    assert aggregator.lr == 0.5
