"""What is left of an example in an update."""

import torch

from fedexp.parts.audit.traces import gradient_coefficients


def test_coefficients_come_back():
    """Also where the gradients have more in common with the known sum than with themselves."""
    generator = torch.Generator().manual_seed(0)
    known = 50 * torch.randn(400, generator=generator)
    gradients = torch.randn(6, 400, generator=generator) + 0.1 * known
    wanted = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 2.0])
    found = gradient_coefficients(gradients, known, 3 * known + wanted @ gradients)
    torch.testing.assert_close(found, wanted.double(), atol=0.1, rtol=0)
    assert ((gradients @ known).abs() > 100 * gradients.square().sum(dim=1).sqrt()).all()


def test_equals_least_squares_where_nothing_is_nearly_equal():
    generator = torch.Generator().manual_seed(1)
    rows, movement = torch.randn(4, 1000, generator=generator), torch.randn(1000, generator=generator)
    slow = torch.linalg.lstsq(rows.T.double(), movement.double()[:, None]).solution[:3, 0]
    torch.testing.assert_close(gradient_coefficients(rows[:3], rows[3], movement), slow, atol=1e-3, rtol=0.05)


def test_what_has_no_gradient_leaves_no_trace():
    gradients = torch.tensor([[0.0, 0.0], [0.0, 2.0]])
    found = gradient_coefficients(gradients, torch.zeros(2), torch.tensor([1.0, 1.0]))
    assert found[0] == 0
    assert 0.48 < found[1] < 0.5
    assert gradient_coefficients(torch.zeros(2, 3), torch.zeros(3), torch.ones(3)).tolist() == [0, 0]
