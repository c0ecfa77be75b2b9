"""Which networks are chains of layers, and in which order these are called."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from fedexp.training.layers.sequential import layer_chain


class Own(nn.Sequential):
    """Inherits what it does."""


class Twice(nn.Sequential):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(super().forward(input))


def test_layers_come_in_the_order_of_their_calls():
    relu = nn.ReLU()
    inner = Own(OrderedDict(one=nn.Linear(2, 2), two=relu))
    found = layer_chain(nn.Sequential(nn.Flatten(), inner, nn.Linear(2, 2), relu))
    assert found is not None
    assert [name for name, _ in found] == ["0", "1.one", "1.two", "2", "3"]
    assert found[2][1] is found[4][1] is relu


def test_a_layer_alone_is_a_chain_of_one():
    layer = nn.Linear(2, 2)
    assert layer_chain(layer) == [("", layer)]


def test_what_calls_its_layers_otherwise_is_a_single_layer():
    network = Twice(nn.Linear(2, 2))
    assert layer_chain(nn.Sequential(network)) == [("0", network)]


class Frozen(nn.Sequential):
    def train(self, mode: bool = True) -> "Frozen":
        return super().train(False)


def test_who_decides_about_its_mode_or_has_hooks_on_entries_makes_no_chain():
    layer = nn.Linear(2, 2)
    masked = nn.Sequential(layer)
    layer.weight.register_hook(torch.zeros_like)
    assert (
        layer_chain(masked)
        is layer_chain(Frozen(nn.Linear(2, 2)))
        is layer_chain(nn.Sequential(Frozen(nn.Linear(2, 2))))
        is None
    )


def test_a_layer_that_does_more_than_its_type_says_makes_no_chain():
    hooked, own, tied = (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(3))
    hooked[0].register_forward_hook(lambda *_: None)
    own[1].forward = lambda x: x
    tied[0].weight = tied[1].weight
    assert layer_chain(hooked) is layer_chain(own) is layer_chain(tied) is None
    layer = nn.Linear(2, 2)
    assert layer_chain(nn.Sequential(layer, layer)) is None


def test_a_parametrised_layer_is_of_another_type():
    [(_, layer)] = layer_chain(nn.Sequential(weight_norm(nn.Linear(2, 2)))) or []
    assert type(layer) is not nn.Linear
