import math

import pytest
import torch

from fedexp.parts.loss.bce import BCE


def test_by_hand():
    """Odds of 3 and of 1: the first label is there with probability 3/4, the second with 1/2."""
    outputs = torch.tensor([[math.log(3), 0.0]], dtype=torch.float64)
    for first, cost in ((1.0, math.log(4 / 3)), (0.0, math.log(4))):
        each = BCE().per_example(outputs, torch.tensor([[first, 1.0]]))
        assert each.tolist() == pytest.approx([(cost + math.log(2)) / 2])
