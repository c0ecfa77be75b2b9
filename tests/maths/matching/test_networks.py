"""Rows to networks and back, and the networks that clients are given."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from fedexp.core.values import Layout, Weights
from fedexp.maths.matching.networks import as_weights, find_obstacle, hidden_widths, networks, subnetworks
from fedexp.parts.layers import BatchNorm


def chain(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Flatten()]
    for below, above in pairwise(widths):
        layers += [nn.Linear(below, above), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.fixture
def weights() -> Weights:
    network = chain(4, 3, 5, 2)
    layout = Layout.of(network)
    return Weights(layout.flatten(network), layout)


def test_there_and_back(weights: Weights):
    (net,) = networks(weights.layout, weights.flat[None])
    assert hidden_widths(weights.layout) == net.hidden == (3, 5)
    back = as_weights(net, weights)
    assert back.layout == weights.layout
    assert torch.equal(back.flat, weights.flat)


def test_two_rows_are_two_networks(weights: Weights):
    one, two = networks(weights.layout, torch.stack([weights.flat, 2 * weights.flat]))
    for a, b in zip((*one.weights, *one.biases), (*two.weights, *two.biases), strict=True):
        np.testing.assert_array_equal(2 * a, b)


def test_clients_get_the_units_that_they_hold(weights: Weights):
    units = (np.array([[2, 0], [1, 2]]), np.array([[4, 1, 0], [0, 1, 2]]))
    rows = subnetworks(weights, units)
    assert rows.shape == (2, 4 * 2 + 2 + 2 * 3 + 3 + 3 * 2 + 2)
    (whole,) = networks(weights.layout, weights.flat[None])
    small = Layout(weights.layout.names, ((2, 4), (2,), (3, 2), (3,), (2, 3), (2,)), 6)
    for net, first, second in zip(networks(small, rows), *units, strict=True):
        np.testing.assert_array_equal(net.weights[0], whole.weights[0][first])
        np.testing.assert_array_equal(net.weights[1], whole.weights[1][second][:, first])
        np.testing.assert_array_equal(net.weights[2], whole.weights[2][:, second])
        np.testing.assert_array_equal(net.biases[1], whole.biases[1][second])
        np.testing.assert_array_equal(net.biases[2], whole.biases[2])


def test_nobody_gets_no_rows(weights: Weights):
    assert subnetworks(weights, (np.zeros((0, 2), np.int64), np.zeros((0, 3), np.int64))).shape == (0, 27)


Layers = Callable[[], nn.Module]


@pytest.mark.parametrize(
    ("network", "found"),
    [
        (lambda: chain(4, 3, 2), None),
        (lambda: chain(4, 3, 5, 6, 2), None),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), None),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(3, 2)), None),
        (lambda: chain(4, 2), "has no hidden layer"),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)), "has a Conv2d layer"),
        (lambda: nn.Sequential(nn.Linear(4, 3), BatchNorm(3), nn.Linear(3, 2)), "has a BatchNorm layer"),
        (lambda: nn.Sequential(nn.Linear(4, 3, bias=False), nn.Linear(3, 2)), "has a linear layer without biases"),
        (lambda: nn.Bilinear(2, 2, 2), "is no plain chain of layers"),
        (lambda: twice(nn.Linear(3, 3)), "has a linear layer in two places"),
        (lambda: nn.Sequential(nn.Linear(2, 3), nn.Flatten(), nn.Linear(6, 2)), "has a linear layer whose outputs"),
    ],
)
def test_what_can_be_matched(network: Layers, found: str | None):
    fault = find_obstacle(network())
    assert fault == found or (fault and found and fault.startswith(f"{found} "))


def twice(layer: nn.Linear) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(3, 2))
