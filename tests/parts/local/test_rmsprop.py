"""RMSprop by hand and beside PyTorch's."""

import pytest
import torch

from fedexp.parts.local.rmsprop import RMSprop


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("stacked", [False, True])
def test_it_is_pytorchs(stacked: bool):
    rule, theirs = RMSprop(lr=0.01, alpha=0.9, weight_decay=0.3), torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.RMSprop([theirs], lr=0.01, alpha=0.9, weight_decay=0.3)
    w, slots, active = theirs.detach().clone(), torch.zeros(1, 2), torch.ones(1) if stacked else None
    for number in range(1, 5):
        theirs.grad = torch.tensor([number * 1.0, -0.5])
        optimizer.step()
        grad = rule.direction(torch.tensor([number * 1.0, -0.5]), w, w)
        rule.update(w, grad, slots, torch.tensor(float(number)), active)
    torch.testing.assert_close(w, theirs.detach(), atol=1e-12, rtol=0)


def test_two_steps_by_hand():
    """v = 1/2 4^2 = 8, then 1/2 8 + 1/2 2^2 = 6: w = 1 - 0.1 4 / sqrt 8 - 0.1 2 / sqrt 6."""
    rule, w, slots = RMSprop(lr=0.1, alpha=0.5, eps=1e-12), torch.tensor([1.0]), torch.zeros(1, 1)
    for step, grad in ((1.0, 4.0), (2.0, 2.0)):
        rule.update(w, torch.tensor([grad]), slots, torch.tensor(step), None)
    assert w.item() == pytest.approx(1 - 0.4 / 8**0.5 - 0.2 / 6**0.5)


def test_a_row_that_is_done_stays():
    w = torch.tensor([[4.0], [4.0]])
    RMSprop().update(w, torch.ones(2, 1), torch.zeros(1, 2, 1), torch.tensor(1.0), torch.tensor([[1.0], [0.0]]))
    assert w[0] < 4
    assert w[1] == 4
