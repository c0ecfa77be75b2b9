import math

import pytest
import torch
from torch.nn import functional as F

from fedexp.parts.loss.generalized_cross_entropy import GeneralizedCrossEntropy

OUTPUTS, TARGETS = torch.tensor([[0.0, math.log(3)], [0.0, math.log(3)]]), torch.tensor([0, 1])  # a quarter and three


def test_by_hand():
    """Probabilities of 1/4 and 3/4: their roots are 0.5 and 0.8660."""
    costs = GeneralizedCrossEntropy(q=0.5).per_example(OUTPUTS, TARGETS)
    torch.testing.assert_close(costs, torch.tensor([2 * (1 - 0.5), 2 * (1 - math.sqrt(0.75))]))


def test_a_power_of_one_is_half_the_absolute_error_of_the_probabilities():
    costs = GeneralizedCrossEntropy(q=1.0).per_example(OUTPUTS, TARGETS)
    gap = (OUTPUTS.softmax(dim=1) - F.one_hot(TARGETS)).abs().sum(dim=1)
    torch.testing.assert_close(costs, gap / 2)


def test_a_small_power_is_cross_entropy():
    outputs, targets = torch.randn(20, 5, dtype=torch.float64), torch.arange(20) % 5
    costs = GeneralizedCrossEntropy(q=1e-6).per_example(outputs, targets)
    torch.testing.assert_close(costs, F.cross_entropy(outputs, targets, reduction="none"), rtol=1e-4, atol=0)


@pytest.mark.parametrize("q", [0.3, 0.7, 1.0])
def test_the_gradient_is_that_of_cross_entropy_times_a_power_of_the_probability(q: float):
    outputs = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.arange(7) % 4
    (gradient,) = torch.autograd.grad(GeneralizedCrossEntropy(q=q).per_example(outputs, targets).sum(), outputs)
    (usual,) = torch.autograd.grad(F.cross_entropy(outputs, targets, reduction="sum"), outputs)
    share = outputs.softmax(dim=1).gather(1, targets[:, None]) ** q
    torch.testing.assert_close(gradient, share * usual)


def test_an_improbable_label_has_no_gradient_and_a_finite_cost():
    outputs = torch.tensor([[1000.0, 0.0]], requires_grad=True)
    cost = GeneralizedCrossEntropy().per_example(outputs, torch.tensor([1]))
    cost.sum().backward()
    assert outputs.grad is not None
    assert cost.item() == pytest.approx(1 / 0.7)
    assert not outputs.grad.any()


def test_it_is_measured_by_cross_entropy():
    measured = GeneralizedCrossEntropy().evaluation_losses(OUTPUTS, TARGETS)
    assert measured.tolist() == pytest.approx([math.log(4), math.log(4 / 3)])
