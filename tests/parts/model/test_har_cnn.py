"""The network of signals."""

import pytest
from networks import CIFAR, HAR, TABLE, parameters

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.har_cnn import HARCNN


@pytest.mark.parametrize(("shape", "inputs", "flat"), [(HAR, 6, 64 * 32), (TABLE, 1, 64 * 140)])
def test_two_pools_quarter_the_length_and_three_linear_layers_follow(shape: tuple[int, ...], inputs: int, flat: int):
    convolutions = (inputs * 32 * 3 + 32) + (32 * 64 * 3 + 64)
    assert parameters(HARCNN(), shape, 12) == convolutions + (flat * 128 + 128) + (128 * 64 + 64) + 65 * 12


def test_har_cnn_refuses_images():
    with pytest.raises(ConfigError, match=r"model=har_cnn needs signals .* have shape \(3, 32, 32\)"):
        HARCNN().refuse(Facts(CIFAR, 10, 1))
