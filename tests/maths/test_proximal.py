"""The proximal maps by hand, and as the arg-min that they are."""

import pytest
import torch

from fedexp.maths.proximal import Penalty, proximal_residual

V = torch.tensor([[3.0, -4.0], [0.3, -0.4], [0.0, 0.0]])


def prox(v: torch.Tensor, penalty: Penalty, rho: float) -> torch.Tensor:
    """The proximal map of rho times the penalty."""
    return v - proximal_residual(v, penalty, rho)


def test_half_the_squared_norm_divides():
    assert prox(V, "l2_squared", 3.0).tolist() == [[0.75, -1.0], [pytest.approx(0.075), pytest.approx(-0.1)], [0, 0]]


def test_the_norm_shortens_by_rho_and_swallows_what_is_shorter():
    torch.testing.assert_close(prox(V, "l2", 2.5), torch.tensor([[1.5, -2.0], [0, 0], [0, 0]]))


def test_absolute_values_are_soft_thresholds():
    torch.testing.assert_close(prox(V, "l1", 0.35), torch.tensor([[2.65, -3.65], [0.0, -0.05], [0, 0]]))


@pytest.mark.parametrize("penalty", ["l2_squared", "l2", "l1"])
def test_without_weight_nothing_is_taken_away(penalty):
    assert torch.equal(prox(V, penalty, 0.0), V)
    assert not proximal_residual(V, penalty, 0.0).any()


@pytest.mark.parametrize("penalty", ["l2_squared", "l2", "l1"])
def test_nothing_near_is_better(penalty):
    """What rho phi(u) + ||u - v||^2 / 2 has around its least value."""
    phi = {
        "l2_squared": lambda u: u.square().sum(-1) / 2,
        "l2": lambda u: u.norm(dim=-1),
        "l1": lambda u: u.abs().sum(-1),
    }[penalty]
    draws = torch.Generator().manual_seed(0)
    for rho in (0.1, 1.0, 10.0):
        v = torch.randn(5, 4, generator=draws, dtype=torch.float64)
        u = prox(v, penalty, rho)
        for size in (1e-3, 0.1, 1.0):
            near = u + size * torch.randn(200, 5, 4, generator=draws, dtype=torch.float64)
            best, others = (rho * phi(at) + (at - v).square().sum(-1) / 2 for at in (u, near))
            assert (others >= best - 1e-12).all()
