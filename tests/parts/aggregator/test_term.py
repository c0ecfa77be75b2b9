"""TERM by hand, and its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.parts.aggregator.term import tilted_shares


def test_by_hand():
    losses = np.array([0.0, math.log(3)])
    assert tilted_shares(losses, np.ones(2), 1.0) == pytest.approx([1 / 4, 3 / 4])
    assert tilted_shares(losses, np.ones(2), -1.0) == pytest.approx([3 / 4, 1 / 4])
    assert tilted_shares(losses, np.array([3.0, 1.0]), 1.0) == pytest.approx([1 / 2, 1 / 2])
    assert tilted_shares(np.array([5.0, 900.0]), np.array([1.0, 0.0]), 1e3).tolist() == [1, 0]


@pytest.mark.law("aggregator=term", "t = 0 is the mean, to the byte")
@pytest.mark.law("aggregator=term", "a huge t is the update of the client with the largest loss")
def test_a_large_tilt_is_the_worst_client_and_none_the_mean(tiny: Tiny):
    rows = torch.linspace(-1, 1, 3 * world_of(tiny()).layout.size).reshape(3, -1)
    uploads = replace(uploads_like(rows), exact=np.array([[1.0, 1.0], [5.0, 1.0], [0.0, 1.0]]))
    worst, flat = (world_of(tiny("algorithm=term", f"aggregator.t={t}")) for t in (1e4, 0))
    torch.testing.assert_close(folded(worst, uploads)[0] - worst.first.flat, rows[1], atol=1e-5, rtol=0)
    plain = world_of(tiny("aggregator.weighting=uniform"))
    assert torch.equal(folded(flat, uploads)[0], folded(plain, uploads)[0])


@pytest.mark.law("aggregator=term", "on quadratics the step goes along the gradient of log(mean exp(t F)) / t")
def test_the_gradient_of_the_tilted_loss():
    """On F_k(w) = (w - c_k)^2 the mean gradient by these shares is that of log(mean exp(t F)) / t."""
    w, centres = torch.tensor(0.3, dtype=torch.float64, requires_grad=True), torch.tensor([0.0, 1.0, 3.0])
    losses = (w - centres).square()
    (torch.logsumexp(0.7 * losses, 0) / 0.7).backward()
    share = tilted_shares(losses.detach().numpy(), np.ones(3), 0.7)
    assert w.grad is not None
    assert w.grad.item() == pytest.approx(float((share * 2 * (0.3 - centres.numpy())).sum()))
