"""AdamW by hand and beside PyTorch's."""

import pytest
import torch

from fedexp.parts.local.adamw import AdamW


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("stacked", [False, True])
def test_it_is_pytorchs(stacked: bool):
    rule, theirs = AdamW(lr=0.01, weight_decay=0.3), torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.3)
    w, slots, active = theirs.detach().clone(), torch.zeros(2, 2), torch.ones(1) if stacked else None
    for number in range(1, 5):
        theirs.grad = torch.tensor([number * 1.0, -0.5])
        optimizer.step()
        grad = rule.direction(torch.tensor([number * 1.0, -0.5]), w, w)
        rule.update(w, grad, slots, torch.tensor(float(number)), active)
    torch.testing.assert_close(w, theirs.detach(), atol=1e-12, rtol=0)


@pytest.mark.law("local=adamw", "without a gradient a weight loses lr times weight_decay of itself and no more")
def test_decay_is_no_part_of_the_gradient_by_hand():
    """Without a gradient only 1/10 * 1/2 of w goes; the first step of Adam is the rate, whatever the gradient."""
    rule, w = AdamW(lr=0.1, weight_decay=0.5), torch.tensor([4.0])
    rule.update(w, torch.zeros(1), torch.zeros(2, 1), torch.tensor(1.0), None)
    assert w.item() == pytest.approx(4 * 0.95)
    rule.update(w, torch.tensor([7.0]), torch.zeros(2, 1), torch.tensor(1.0), None)
    assert w.item() == pytest.approx(4 * 0.95 * 0.95 - 0.1)


def test_a_row_that_is_done_does_not_decay():
    w = torch.tensor([[4.0], [4.0]])
    AdamW(weight_decay=0.5).update(
        w, torch.ones(2, 1), torch.zeros(2, 2, 1), torch.tensor(1.0), torch.tensor([[1.0], [0.0]])
    )
    assert w[0] < 4
    assert w[1] == 4
