"""Exact sizes of every network, and what each refuses."""

import pytest
import torch
from composing import options
from worlds import Tiny

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.complex_cnn import ComplexCNN
from fedexp.parts.model.contract import Model
from fedexp.parts.model.har_cnn import HARCNN
from fedexp.parts.model.keras_cnn import KerasCNN
from fedexp.parts.model.mlp import MLP
from fedexp.parts.model.simple_cnn import SimpleCNN

MNIST, CIFAR, HAR, TABLE = (1, 28, 28), (3, 32, 32), (6, 128), (561,)


@pytest.mark.parametrize(
    ("model", "shape", "classes", "parameters"),
    [
        (MLP(), MNIST, 10, 101_770),
        (MLP(hidden=()), MNIST, 10, 7_850),
        (SimpleCNN(), CIFAR, 10, 5_354),
        (ComplexCNN(), CIFAR, 10, 1_342_122),
        (
            ComplexCNN(norm="group"),
            CIFAR,
            10,
            # convolutions, a weight and a bias a normalised channel, 128 x 4 x 4 values into 512 units, 10 classes
            (896 + 9_248 + 18_496 + 36_928 + 73_856 + 147_584) + 2 * 448 + (2048 * 512 + 512) + 5_130,
        ),
        (KerasCNN(), MNIST, 10, 320 + 18_496 + 31_370),
        (HARCNN(), HAR, 12, (6 * 32 * 3 + 32) + (32 * 64 * 3 + 64) + (2048 * 128 + 128) + (128 * 64 + 64) + 65 * 12),
        (HARCNN(), TABLE, 12, (32 * 3 + 32) + (32 * 64 * 3 + 64) + (8960 * 128 + 128) + (128 * 64 + 64) + 65 * 12),
    ],
)
def test_parameters(model: Model, shape: tuple[int, ...], classes: int, parameters: int):
    network = model.network(Facts(shape, classes, 100))
    assert Layout.of(network).parameters == parameters
    assert network(torch.zeros((2, *shape))).shape == (2, classes)


@pytest.mark.parametrize("model", [SimpleCNN(), ComplexCNN(), KerasCNN()])
@pytest.mark.parametrize("shape", [HAR, TABLE, (1, 3, 3)])
def test_image_networks_say_what_they_need(model: Model, shape: tuple[int, ...]):
    with pytest.raises(ConfigError, match=r"needs images .* have shape .*; use model=mlp"):
        model.refuse(Facts(shape, 10, 1))


@pytest.mark.parametrize("option", options("model"))
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (6, 128), (561,), (8,)])
def test_every_model_runs_or_says_why_not(tiny: Tiny, option: str, shape: tuple[int, ...]):
    model, facts = spec.build(tiny(f"model={option}")).model, Facts(shape, 7, 10)
    try:
        model.refuse(facts)
    except ConfigError as error:
        assert str(error).startswith(f"model={option} needs")  # noqa: PT017 - either outcome is right
        return
    network = model.network(facts)
    logits = network(torch.randn(3, *shape))
    assert logits.shape == (3, 7)
    grads = torch.autograd.grad(logits.sum(), list(network.parameters()), allow_unused=True)
    assert all(grad is not None for grad in grads)
    assert Layout.of(network).size == sum(grad.numel() for grad in grads if grad is not None) + sum(
        buffer.numel() for buffer in network.buffers()
    )
