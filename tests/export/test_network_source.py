"""Networks as plain PyTorch: the same outputs to the bit, and no word of fedexp."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fedexp.export.network_source import SourceError, load_source, network_source, plain_entries
from fedexp.parts import BatchNorm, Residual
from fedexp.parts.model.char_lstm import LSTMNetwork


class Branches(nn.Module):
    """What users write: functions, a parameter of its own, a shared layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
        self.gain = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.register_buffer("shift", torch.tensor(0.5))
        self.last = nn.Linear(2, 2)

    def forward(self, x):
        means = F.relu(self.body(x) + self.shift).mean(dim=(2, 3)) * self.gain
        return self.last(self.last(means))


class Changing(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class OwnLinear(nn.Linear):
    """A layer of a user's: what it does is followed."""


def chain():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3), nn.ReLU(), nn.Linear(3, 2))


def residual():
    body = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), BatchNorm(1, momentum=0.3), nn.ReLU())
    return nn.Sequential(Residual(body), nn.Flatten(), nn.Linear(16, 2))


CASES = {
    "chain": (chain, lambda: torch.rand(2, 1, 4, 4)),
    "residual": (residual, lambda: torch.rand(2, 1, 4, 4)),
    "branches": (Branches, lambda: torch.rand(2, 1, 4, 4)),
    "own layer": (lambda: nn.Sequential(OwnLinear(2, 3), nn.ReLU()), lambda: torch.rand(2, 2)),
    "lstm": (lambda: LSTMNetwork(5, (2, 3, 1), 4, every=False), lambda: torch.randint(0, 5, (2, 6))),
    "lstm, every token": (lambda: LSTMNetwork(5, (2, 3, 1), 4, every=True), lambda: torch.randint(0, 5, (2, 6))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_source_is_the_network(name):
    make, draw = CASES[name]
    network, x = make().eval(), draw()
    source = network_source(network)
    copy = load_source(source)
    copy.load_state_dict(plain_entries(network, copy))
    with torch.no_grad():
        assert torch.equal(copy(x), network(x))
    assert "fedexp" not in source.partition('"""\n\n')[2]


class TrainingAlone(nn.Module):
    """With a layer, a number and a count that evaluation does not use, and one layer under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.last = self.again = nn.Linear(2, 2)
        self.auxiliary = nn.Sequential(nn.Linear(2, 3))
        self.register_buffer("noise", torch.full((1,), 0.1))
        self.register_buffer("count", torch.tensor(7))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.last(self.auxiliary(x + self.noise) * self.count if self.training else x)


def test_what_serves_training_alone_is_among_the_entries():
    network = TrainingAlone().eval()
    copy = load_source(network_source(network))
    entries = plain_entries(network, copy)
    assert list(entries) == ["noise", "count", "last.weight", "last.bias", "auxiliary.0.weight", "auxiliary.0.bias"]
    copy.load_state_dict(entries)
    assert (copy.get_buffer("noise").item(), copy.get_buffer("count").item()) == (pytest.approx(0.1), 7)
    assert torch.equal(copy.get_parameter("auxiliary.0.bias"), network.get_parameter("auxiliary.0.bias"))
    assert torch.equal(copy(torch.ones(1, 2)), network(torch.ones(1, 2)))


def test_a_chain_of_layers_reads_as_one():
    assert network_source(chain()).endswith(
        "class Model(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(\n"
        "            nn.Flatten(start_dim=1, end_dim=-1),\n"
        "            nn.Linear(in_features=16, out_features=3, bias=True),\n"
        "            nn.ReLU(),\n"
        "            nn.Linear(in_features=3, out_features=2, bias=True),\n"
        "        )\n"
    )


def test_settings_that_are_code_are_not_run():
    network = nn.Sequential(nn.LayerNorm(2, elementwise_affine="__import__('os').abort() or True"))  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="no call with plain values"):
        network_source(network)


@pytest.mark.parametrize("network", [Changing(), nn.Sequential(nn.Linear(2, 2), Changing())])
def test_what_cannot_be_written_is_said(network):
    with pytest.raises(SourceError):
        network_source(network)
