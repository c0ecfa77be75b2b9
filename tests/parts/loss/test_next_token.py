import math

import pytest
import torch

from fedexp.parts.loss.next_token import NextToken

# Tokens with odds of 1 and 3, twice, for two examples.
OUTPUTS = torch.tensor([0.0, math.log(3)], dtype=torch.float64).expand(2, 2, 2)


def test_by_hand_each_example_counts_alike_whatever_its_number_of_tokens():
    """The first example has tokens of probabilities 1/4 and 3/4, the second one of 1/4 and one that is ignored."""
    targets = torch.tensor([[0, 1], [0, -100]])
    costs = [(math.log(4) + math.log(4 / 3)) / 2, math.log(4)]
    assert NextToken().per_example(OUTPUTS, targets).tolist() == pytest.approx(costs)
    assert float(NextToken().mean(OUTPUTS, targets)) == pytest.approx(sum(costs) / 2)


def test_an_example_without_a_token_to_predict_costs_nothing_and_moves_nothing():
    outputs = OUTPUTS.clone().requires_grad_()
    each = NextToken().per_example(outputs, torch.full((2, 2), -100))
    assert each.tolist() == [0, 0]
    each.sum().backward()
    assert outputs.grad is not None
    assert not outputs.grad.any()
