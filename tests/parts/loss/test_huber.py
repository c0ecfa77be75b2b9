import torch

from fedexp.parts.loss.huber import Huber
from fedexp.parts.loss.mse import MSE


def test_by_hand():
    """Misses of 1 and 4 with delta 2: 1/2, and 2 (4 - 1)."""
    outputs, targets = torch.zeros(1, 2), torch.tensor([[1.0, -4.0]])
    assert Huber(delta=2.0).per_example(outputs, targets).tolist() == [(0.5 + 6) / 2]


def test_a_delta_that_nothing_exceeds_is_half_the_squared_error():
    outputs, targets = torch.randn(5, 3), torch.randn(5, 3)
    torch.testing.assert_close(Huber(delta=100).per_example(outputs, targets), MSE().per_example(outputs, targets) / 2)
