"""Exact sizes of every network, and what each refuses."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fedexp.core.errors import ConfigError
from fedexp.core.initialise import initialise
from fedexp.core.random_streams import stream
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.layers import BatchNorm, Dropout
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


@pytest.mark.parametrize("model", [SimpleCNN(), ComplexCNN(), KerasCNN()])
@pytest.mark.parametrize("shape", [HAR, TABLE, (1, 3, 3)])
def test_image_networks_say_what_they_need(model: Model, shape: tuple[int, ...]):
    with pytest.raises(ConfigError, match=r"needs images .* have shape .*; use model=mlp"):
        model.refuse(Facts(shape, 10, 1))


def test_har_cnn_refuses_images():
    with pytest.raises(ConfigError, match=r"model=har_cnn needs signals .* have shape \(3, 32, 32\)"):
        HARCNN().refuse(Facts(CIFAR, 10, 1))


@pytest.mark.parametrize("side", [7, 8, 9, 28, 33])
def test_simple_cnn_adapts_to_any_side(side: int):
    facts = Facts((1, side, side), 3, 1)
    SimpleCNN().refuse(facts)
    assert SimpleCNN().network(facts)(torch.zeros(2, 1, side, side)).shape == (2, 3)


def test_first_weights_follow_pytorchs_law_and_the_stream():
    one, two, other = (MLP().network(Facts(MNIST, 10, 1)) for _ in range(3))
    for network, seed in ((one, 1), (two, 1), (other, 2)):
        initialise(network, stream(seed, "model"))
    row = Layout.of(one).flatten(one)
    assert torch.equal(row, Layout.of(two).flatten(two))
    assert not torch.equal(row, Layout.of(other).flatten(other))
    first = row[: 784 * 128]
    assert first.abs().max() <= 1 / 28
    assert first.std() == pytest.approx(1 / 28 / math.sqrt(3), rel=0.01)


def masked_norm() -> BatchNorm:
    layer = BatchNorm(3)
    layer.weight.data = torch.tensor([1.0, 2.0, -0.5])
    layer.bias.data = torch.tensor([0.0, 1.0, 3.0])
    return layer


def test_masked_batch_norm_is_pytorchs_on_the_unmasked_examples():
    x = torch.randn(6, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    keep = torch.tensor([True, False, True, True, False, True])
    layer, mean, var = masked_norm(), torch.zeros(3), torch.ones(3)
    padded = x.clone().requires_grad_()
    layer.mask = keep
    out = layer(padded)
    plain = x[keep].clone().requires_grad_()
    expected = F.batch_norm(plain, mean, var, layer.weight, layer.bias, training=True)
    torch.testing.assert_close(out[keep], expected)
    assert layer.updated is not None
    torch.testing.assert_close(layer.updated, (mean, var))
    weight = torch.randn(out[keep].shape)
    (out[keep] * weight).sum().backward()
    (expected * weight).sum().backward()
    assert padded.grad is not None
    torch.testing.assert_close(padded.grad[keep], plain.grad, atol=1e-5, rtol=1e-4)
    assert not padded.grad[~keep].any()


def test_a_batch_of_padding_leaves_the_statistics():
    layer = masked_norm()
    layer.mask = torch.zeros(2, dtype=torch.bool)
    assert layer(torch.randn(2, 3, 2, 2)).isfinite().all()
    assert layer.updated is not None
    torch.testing.assert_close(layer.updated, (torch.zeros(3), torch.ones(3)))


def test_dropout_keeps_the_mean_and_follows_its_generator():
    layer, x = Dropout(0.4), torch.ones(100_000)
    draws = []
    for _ in range(2):
        layer.generator = torch.Generator().manual_seed(3)
        draws.append(layer(x))
    assert torch.equal(*draws)
    assert draws[0].mean() == pytest.approx(1.0, abs=0.01)
    assert (draws[0] == 0).float().mean() == pytest.approx(0.4, abs=0.01)
    assert torch.equal(layer.eval()(x), x)
