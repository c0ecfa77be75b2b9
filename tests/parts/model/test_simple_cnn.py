"""The smallest network of images."""

import pytest
import torch

from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.simple_cnn import SimpleCNN

MNIST, CIFAR, HAR, TABLE = (1, 28, 28), (3, 32, 32), (6, 128), (561,)


@pytest.mark.parametrize("side", [7, 8, 9, 28, 33])
def test_simple_cnn_adapts_to_any_side(side: int):
    facts = Facts((1, side, side), 3, 1)
    SimpleCNN().refuse(facts)
    assert SimpleCNN().network(facts)(torch.zeros(2, 1, side, side)).shape == (2, 3)
