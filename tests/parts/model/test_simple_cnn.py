"""The smallest network of images."""

import pytest
import torch
from networks import CIFAR, parameters

from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.simple_cnn import SimpleCNN


def test_as_many_parameters_as_the_thesis_says():
    """Two convolutions of 8 channels of 4 x 4 entries and a bias, and 8 x 7 x 7 values into 10 classes."""
    assert parameters(SimpleCNN(), CIFAR, 10) == (3 * 16 * 8 + 8) + (8 * 16 * 8 + 8) + (392 * 10 + 10) == 5_354


@pytest.mark.parametrize("side", [7, 8, 9, 28, 33])
def test_simple_cnn_adapts_to_any_side(side: int):
    facts = Facts((1, side, side), 3, 1)
    SimpleCNN().refuse(facts)
    assert SimpleCNN().network(facts)(torch.zeros(2, 1, side, side)).shape == (2, 3)
