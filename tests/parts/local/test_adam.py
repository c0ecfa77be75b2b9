"""Local Adam by hand: the first step, the second one, and what decays."""

import pytest
import torch

from fedexp.parts.local.adam import Adam


def walked(rule: Adam, grads: list[float], start: float = 0.0) -> list[float]:
    """Where one weight is after each gradient, from moments that are zero."""
    w, slots, seen = torch.tensor([start]), torch.zeros(rule.slots, 1), []
    for number, grad in enumerate(grads, start=1):
        direction = rule.direction(torch.tensor([grad]), w, torch.zeros(1))
        rule.update(w, direction, slots, torch.tensor(float(number)), None)
        seen.append(w.item())
    return seen


@pytest.mark.law("local=adam", "the first step of a weight is the rate, whatever the gradient, if it is far above eps")
@pytest.mark.parametrize("grad", [1e-3, 7.0, -250.0])
def test_the_first_step_is_the_rate_whatever_the_gradient(grad: float):
    assert walked(Adam(lr=0.1), [grad]) == pytest.approx([-0.1 if grad > 0 else 0.1], rel=1e-4)


def test_two_steps():
    # m = .5, .25 - .5 = -.25, over 1 - .25: -1/3; v = .5, .25 + .5 = .75, over 1 - .25: 1
    rule = Adam(lr=0.3, beta1=0.5, beta2=0.5)
    assert walked(rule, [1.0, -1.0]) == pytest.approx([-0.3, -0.3 + 0.1])


def test_weight_decay_is_part_of_the_gradient():
    """-1 + 0.5 * 4 points down, -1 alone up."""
    assert walked(Adam(lr=0.1, weight_decay=0.5), [-1.0], start=4.0) == pytest.approx([3.9])
    assert walked(Adam(lr=0.1), [-1.0], start=4.0) == pytest.approx([4.1])


def test_both_moments_are_kept():
    assert Adam().slots == 2
