"""Entries from elsewhere in a network."""

import pytest
import torch
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.export.entries import set_entries


def entries_of(network):
    return {name: torch.full_like(entry, 2.0) for name, entry in network.state_dict().items()}


def make_network(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 2))


def test_wider_layers_take_the_place_of_the_model_s():
    network, wide = (make_network(width) for width in (3, 5))
    set_entries(network, entries_of(wide), "it")
    assert repr(network) == repr(wide)
    assert network(torch.ones(1, 2)).tolist() == [[62.0, 62.0]]  # 5 units of 2 + 2 + 2, each times 2, and 2


def test_a_layer_with_two_names_needs_one():
    layer = nn.Linear(2, 2)
    network = nn.Sequential(layer, nn.ReLU(), layer)
    set_entries(network, {name: entry for name, entry in entries_of(network).items() if name[0] == "0"}, "it")
    assert layer.weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"0.weight": None}, "lacks 0.weight"),
        ({"more": torch.ones(1)}, "has more, which the network has not"),
        ({"0.bias": torch.ones(2, dtype=torch.float64)}, "must hold torch.float32 of 1 dimensions for 0.bias"),
        ({"0.bias": torch.ones(2, 2)}, "must hold torch.float32 of 1 dimensions for 0.bias"),
    ],
)
def test_entries_that_do_not_fit_are_one_line(change, said):
    network = nn.Sequential(nn.Linear(2, 2))
    entries = {name: entry for name, entry in (entries_of(network) | change).items() if entry is not None}
    with pytest.raises(ConfigError, match=f"weights.pt .*{said}"):
        set_entries(network, entries, "weights.pt")
