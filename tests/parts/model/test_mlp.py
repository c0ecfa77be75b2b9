"""The multi-layer perceptron: its first weights."""

import math

import pytest
import torch
from networks import MNIST, parameters

from fedexp.core.initialise import initialise
from fedexp.core.random_streams import stream
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.mlp import MLP


@pytest.mark.parametrize(("hidden", "count"), [((128,), 784 * 128 + 128 + 129 * 10), ((), 784 * 10 + 10)])
def test_a_weight_an_input_and_a_bias_a_unit(hidden: tuple[int, ...], count: int):
    assert parameters(MLP(hidden=hidden), MNIST, 10) == count == {1: 101_770, 0: 7_850}[len(hidden)]


def test_128_units_unless_asked_otherwise():
    assert MLP() == MLP(hidden=(128,))


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


def test_dropout_follows_each_hidden_layer_and_equals_dropout_before_relu():
    network = MLP(hidden=(50, 40), dropout=0.5).network(Facts(MNIST, 10, 1)).train()
    assert [type(layer).__name__ for layer in network] == ["Flatten", *["Linear", "ReLU", "Dropout"] * 2, "Linear"]
    x = torch.randn(3, *MNIST)
    torch.manual_seed(0)  # noqa: TID251 - PyTorch's own layers
    behind = network[3](network[2](network[1](network[0](x))))
    torch.manual_seed(0)  # noqa: TID251
    before = network[2](network[3](network[1](network[0](x))))
    assert torch.equal(behind, before)
    active = network[2](network[1](network[0](x))) > 0
    assert 0.2 < float((behind[active] == 0).float().mean()) < 0.8  # of about 75


def test_without_dropout_there_is_no_such_layer():
    assert not any(isinstance(layer, torch.nn.Dropout) for layer in MLP().network(Facts(MNIST, 10, 1)))
