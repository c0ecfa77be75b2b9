"""The deeper network of images: what its two ways of normalising add and keep."""

import pytest
import torch
from networks import CIFAR, MNIST, parameters
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.initialise import initialise
from fedexp.core.random_streams import stream
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.layers import BatchNorm
from fedexp.parts.model.complex_cnn import ComplexCNN
from fedexp.parts.model.keras_cnn import KerasCNN


def test_as_many_parameters_as_the_thesis_says():
    assert parameters(ComplexCNN(), CIFAR, 10) == 1_342_122


def test_group_norm_has_the_same_weights():
    # convolutions, a weight and a bias a normalised channel, 128 x 4 x 4 values into 512 units, 10 classes
    convolutions = 896 + 9_248 + 18_496 + 36_928 + 73_856 + 147_584
    count = convolutions + 2 * 448 + (2048 * 512 + 512) + 5_130
    assert parameters(ComplexCNN(norm="group"), CIFAR, 10) == count


def test_only_batch_norm_adds_buffers():
    assert Layout.of(ComplexCNN().network(Facts(CIFAR, 10, 1))).size == 1_342_122 + 2 * 448
    assert Layout.of(KerasCNN().network(Facts(MNIST, 10, 1))).size == 50_186
    assert Layout.of(ComplexCNN(norm="group").network(Facts(CIFAR, 10, 1))).size == 1_342_122


def test_group_norm_keeps_an_example_to_itself_and_batch_norm_does_not():
    x = torch.randn(5, *CIFAR, generator=torch.Generator().manual_seed(0))
    gaps = {}
    for norm in ("batch", "group"):
        network = ComplexCNN(norm=norm).network(Facts(CIFAR, 10, 1)).train()
        initialise(network, stream(1, "model"))
        for layer in network.modules():
            if isinstance(layer, BatchNorm | nn.GroupNorm):
                assert (layer.weight == 1).all()
                assert (layer.bias == 0).all()
        gaps[norm] = (network(x)[:2] - network(x[:2])).abs().max()
    assert gaps["group"] < 1e-5
    assert gaps["batch"] > 1e-3


def test_group_norm_has_nothing_that_a_client_could_keep():
    with pytest.raises(ConfigError, match=r"ComplexCNN\.buffers must be average with norm=group, .* got local; "):
        ComplexCNN(norm="group", buffers="local")
