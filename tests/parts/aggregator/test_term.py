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
@pytest.mark.law("aggregator=term", "a huge t is the update of the client with the largest loss, to the byte")
@pytest.mark.law("aggregator=term", "a huge negative t is the update of the client with the smallest, to the byte")
@pytest.mark.parametrize(("t", "who"), [(0, [0, 1, 2]), (1e4, [1]), (1e308, [1]), (-1e4, [2]), (-1e308, [2])])
def test_a_large_tilt_is_one_client_and_none_the_mean(tiny: Tiny, t: float, who: list[int]):
    ours, plain = world_of(tiny("algorithm=term", f"aggregator.t={t}")), world_of(tiny("aggregator.weighting=uniform"))
    rows = torch.linspace(-1, 1, 3 * ours.layout.size).reshape(3, -1)
    uploads = replace(uploads_like(rows), exact=np.array([[1.0, 1.0], [5.0, 1.0], [0.5, 1.0]]))
    assert torch.equal(folded(ours, uploads)[0], folded(plain, uploads.where(np.array(who)))[0])


@pytest.mark.parametrize(
    ("t", "losses", "shares"),
    [
        (1e308, [1.0, 5.0, 5.0, 9.0], [0, 1 / 4, 3 / 4, 0]),
        (-1e308, [5.0, 3.0, 3.0, 0.0], [0, 1 / 4, 3 / 4, 0]),
        (1e308, [-7.0, -5.0, -5.0, -3.0], [0, 1 / 4, 3 / 4, 0]),
        (-1e308, [-5.0, -7.0, -7.0, -9.0], [0, 1 / 4, 3 / 4, 0]),
        (2.0, [1e307, 1.7e308, 1.7e308, 0.0], [0, 1 / 4, 3 / 4, 0]),
        (1e308, [-1e308, 1e308, 1e308, 0.0], [0, 1 / 4, 3 / 4, 0]),
    ],
)
def test_exponents_beyond_all_numbers_leave_the_heaviest_clients(t: float, losses: list[float], shares: list[float]):
    """The last client does not count."""
    assert tilted_shares(np.array(losses), np.array([2.0, 1.0, 3.0, 0.0]), t).tolist() == shares


@pytest.mark.parametrize("t", [-3.0, 0.0, 0.5, 1.0, 300.0])
def test_usual_tilts_are_the_softmax_of_t_times_the_losses_to_the_byte(t: float):
    losses, counts = np.random.default_rng(0).gamma(2.0, size=(2, 9))
    tilted = counts * np.exp(t * losses - (t * losses).max())
    assert np.array_equal(tilted_shares(losses, counts, t), tilted / tilted.sum())


@pytest.mark.law("aggregator=term", "on quadratics the step goes along the gradient of log(mean exp(t F)) / t")
def test_the_gradient_of_the_tilted_loss():
    """On F_k(w) = (w - c_k)^2 the mean gradient by these shares is that of log(mean exp(t F)) / t."""
    w, centres = torch.tensor(0.3, dtype=torch.float64, requires_grad=True), torch.tensor([0.0, 1.0, 3.0])
    losses = (w - centres).square()
    (torch.logsumexp(0.7 * losses, 0) / 0.7).backward()
    share = tilted_shares(losses.detach().numpy(), np.ones(3), 0.7)
    assert w.grad is not None
    assert w.grad.item() == pytest.approx(float((share * 2 * (0.3 - centres.numpy())).sum()))
