"""The network of signals."""

import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.har_cnn import HARCNN

MNIST, CIFAR, HAR, TABLE = (1, 28, 28), (3, 32, 32), (6, 128), (561,)


def test_har_cnn_refuses_images():
    with pytest.raises(ConfigError, match=r"model=har_cnn needs signals .* have shape \(3, 32, 32\)"):
        HARCNN().refuse(Facts(CIFAR, 10, 1))
