"""The clipped sum equals clipping every example's gradient by hand, layer by layer and for whole networks."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from networks import published
from torch import nn
from torch.func import vmap
from torch.nn import functional as F

from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.complex_cnn import ComplexCNN
from fedexp.parts.model.har_cnn import HARCNN
from fedexp.parts.model.keras_cnn import KerasCNN
from fedexp.parts.model.mlp import MLP
from fedexp.training.layers.example_gradients import OuterProductGradients
from fedexp.training.layers.kinds.linear import linear_gradients
from fedexp.training.layers.registry import kind_of
from fedexp.training.per_example.clipped_sum import ClippedGradientSum, Noise

pytestmark = pytest.mark.usefixtures("_narrow")
cross_entropies = partial(F.cross_entropy, reduction="none")

CASES = {
    "mlp": (MLP(hidden=(9, 7)), (12,)),
    "softmax": (MLP(hidden=()), (12,)),
    "simple_cnn": (published("simple_cnn"), (3, 8, 8)),
    "complex_cnn": (ComplexCNN(norm="group"), (1, 16, 16)),
    "keras_cnn": (KerasCNN(dropout=0.0), (1, 8, 8)),
    "har_cnn": (HARCNN(), (3, 16)),
    "har_table": (HARCNN(), (16,)),
}


class Scale(nn.Module):
    """A layer that nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


class Sequences(nn.Module):
    """A linear layer over every step of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.last = nn.Linear(3, 5), nn.Linear(5, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.each(x)).mean(dim=1))


class StepsFirst(nn.Module):
    """A linear layer over sequences with their steps in front of the examples."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.last = nn.Linear(3, 5), nn.Linear(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.each(x.transpose(0, 1).contiguous())).mean(dim=0))


class Reused(nn.Module):
    """Uses an entry in two places; `way` says how."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.first, self.second, self.last = way, nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4)
        if way == "weight":
            self.second.weight = self.first.weight
        elif way != "twice":
            self.second = self.first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x))
        if self.way == "beside":
            return self.last(F.linear(x, self.first.weight))
        x = torch.tanh(self.second(x))
        return self.last(torch.tanh(self.second(x)) if self.way == "twice" else x)


class Rows(nn.Module):
    """Gives a layer more lines than examples, or only one; or names its input in the call."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.first, self.last = way, nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.way == "named":
            return self.first(x[:, :3]) + self.last(input=x[:, 3:])
        if self.way == "constant":
            return self.first(x[:, :3]) * self.last(x.new_ones(1, 3))
        return self.first(x.reshape(-1, 3)).view(-1, 2, 4).sum(dim=1) + self.last(x[:, 3:])


class Flattened(nn.Module):
    """Its only layer takes the steps of all examples side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.each(x.reshape(-1, 3)).view(len(x), 2, 4).mean(dim=1)


def hooked() -> nn.Module:
    network = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
    network[0].register_forward_hook(lambda *given: 2 * given[2])
    return network


def reparametrised() -> nn.Module:
    """Its weight is made of two entries before every call."""
    layer = nn.Linear(6, 5)
    weight = layer.weight.detach()
    del layer.weight
    layer.weight_g, layer.weight_v = nn.Parameter(torch.rand(5, 1)), nn.Parameter(weight)

    def make(own: Any, _: Any) -> None:
        own.weight = own.weight_g * own.weight_v

    layer.register_forward_pre_hook(make)
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(5, 4))


def networks() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    ours = {name: (model.network(Facts(shape, 4, 0)), shape) for name, (model, shape) in CASES.items()}
    strided = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2, dilation=2, bias=False), nn.Flatten(), nn.Linear(27, 4))
    return ours | {
        "strided": (strided, (2, 9, 9)),
        "sequences": (Sequences(), (6, 3)),
        **{f"{steps} steps first": (StepsFirst(), (steps, 3)) for steps in (2, 3, 4)},
        "group norm of vectors": (nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(2, 8), nn.Linear(8, 4)), (6,)),
        "unknown": (nn.Sequential(nn.Linear(6, 4), Scale()), (6,)),
        "overwritten": (nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 4)), (6,)),
        **{f"reused {way}": (Reused(way), (6,)) for way in ("weight", "layer", "twice", "beside")},
        **{f"lines {way}": (Rows(way), (6,)) for way in ("named", "constant", "more")},
        "flattened": (Flattened(), (6,)),
        "hooked": (hooked(), (6,)),
        "reparametrised": (reparametrised(), (6,)),
        "grouped": (nn.Sequential(nn.Conv1d(4, 4, 3, groups=2), nn.Flatten(), nn.Linear(16, 4)), (4, 6)),
    }


FORMED = {"unknown", "grouped", "overwritten", "flattened", "hooked", "reparametrised"}
FORMED |= {name for name in networks() if name.startswith(("reused", "lines")) or name.endswith("steps first")}


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def by_hand(network: nn.Module, x: torch.Tensor, y: torch.Tensor, clip: float) -> torch.Tensor:
    parameters, total = list(network.parameters()), torch.zeros(())
    for position in range(len(y)):
        loss = F.cross_entropy(network(x[position : position + 1]), y[position : position + 1])
        gradient = torch.cat(
            [each.reshape(-1) for each in torch.autograd.grad(loss, parameters, materialize_grads=True)]
        )
        total = total + gradient / max(1.0, float(gradient.norm()) / clip)
    return total


def prepared(name: str, clip: float) -> tuple[nn.Module, ClippedGradientSum, torch.Tensor, torch.Tensor, torch.Tensor]:
    network, shape = networks()[name]
    draw = torch.Generator().manual_seed(1)
    for entry in network.parameters():
        entry.data = torch.randn(entry.shape, generator=draw) / entry[0].numel() ** 0.5
    x, y = torch.randn(7, *shape, generator=draw), torch.arange(7) % 4
    layout = Layout.of(network)
    clipped = ClippedGradientSum(network, layout, clip, x[:1], cross_entropies)
    network.train()
    return network, clipped, layout.flatten(network), x, y


@pytest.mark.parametrize("clip", [0.05, 1.0, math.inf])
@pytest.mark.parametrize("name", list(networks()))
def test_clipped_sums_equal_those_by_hand(name: str, clip: float):
    network, clipped, row, x, y = prepared(name, clip)
    assert clipped.uses_tape == (name not in FORMED)
    total, loss = clipped.batch_sum(row, x, y)
    torch.testing.assert_close(total, by_hand(network, x, y, clip), atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(loss, F.cross_entropy(network(x), y).detach())


@pytest.mark.parametrize("name", list(networks()))
def test_rows_beside_each_other_and_padded_examples(name: str):
    """Three rows at once, the first with two padded examples, one with none at all."""
    network, clipped, row, x, y = prepared(name, 0.3)
    size = clipped.layout.parameters
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[0, 5:], mask[2] = False, False
    rows = row.expand(3, -1)
    stacked = vmap(clipped.clipped_sum, randomness="different")
    totals, (losses, _) = stacked(rows[:, :size], rows[:, size:], x.expand(3, *x.shape), y.expand(3, -1), mask)
    torch.testing.assert_close(totals[0], by_hand(network, x[:5], y[:5], 0.3), atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(totals[1], by_hand(network, x, y, 0.3), atol=1e-12, rtol=1e-10)
    assert not totals[2].any()
    assert losses[2] == 0
    again = stacked(rows[:, :size], rows[:, size:], x.expand(3, *x.shape), y.expand(3, -1), mask)
    assert torch.equal(again[0], totals)


class LeavesOut(nn.Module):
    """Leaves its middle layer out of some steps of training, or calls it twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 4)
        self.times = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).tanh()
        for _ in range(self.times if self.training else 1):
            x = self.middle(x).tanh()
        return self.last(x)


def test_a_layer_that_a_step_leaves_out_has_a_gradient_of_zero():
    network, x, y = LeavesOut(), torch.rand(7, 6), torch.arange(7) % 4
    layout = Layout.of(network)
    clipped = ClippedGradientSum(network, layout, 0.3, x[:1], cross_entropies)
    network.train()
    assert clipped.uses_tape
    network.times = 0
    total, _ = clipped.batch_sum(layout.flatten(network), x, y)
    torch.testing.assert_close(total, by_hand(network, x, y, 0.3))
    assert not layout.views(total)["middle.weight"].any()
    network.times = 2
    with pytest.raises(RuntimeError, match="called more often"):
        clipped.batch_sum(layout.flatten(network), x, y)


def test_known_layers_give_what_forming_every_gradient_gives():
    _, clipped, row, x, y = prepared("simple_cnn", 0.3)
    size, everyone = clipped.layout.parameters, torch.ones(7, dtype=torch.bool)
    taped, _ = clipped.clipped_sum(row[:size], row[size:], x, y, everyone)
    clipped.uses_tape = False
    formed, _ = clipped.clipped_sum(row[:size], row[size:], x, y, everyone)
    torch.testing.assert_close(taped, formed, atol=1e-12, rtol=1e-10)


def test_a_linear_layers_gradients_are_never_formed():
    layer = nn.Linear(3, 2)
    inputs, errors = torch.tensor([[3.0, 0.0, 4.0]]), torch.tensor([[1.0, 2.0]])
    gradients = linear_gradients(layer, inputs, errors)
    assert isinstance(gradients, OuterProductGradients)
    assert gradients.squared_norms().tolist() == [5 * (25 + 1)]
    assert gradients.weighted_sum(torch.tensor([2.0])).tolist() == [6, 0, 8, 12, 0, 16, 2, 4]


def test_what_has_no_gradient_of_single_examples_is_not_known():
    convolution = nn.Conv2d(2, 2, 3, padding="same")
    kind = kind_of(convolution)
    assert kind is not None
    assert kind.gradient_rule(convolution) is None
    assert kind_of(nn.BatchNorm2d(3)) is None


def test_a_zero_gradient_stays_zero_and_an_empty_batch_is_nothing():
    network = nn.Sequential(nn.Linear(2, 1, bias=False))  # one class: the loss is 0 whatever the weights are
    clipped = ClippedGradientSum(network, Layout.of(network), 1.0, torch.ones(1, 2), cross_entropies)
    total, loss = clipped.batch_sum(torch.ones(2), torch.ones(3, 2), torch.zeros(3, dtype=torch.int64))
    assert total.tolist() == [0, 0]
    total, loss = clipped.batch_sum(torch.ones(2), torch.ones(0, 2), torch.zeros(0, dtype=torch.int64))
    assert total.tolist() == [0, 0]
    assert loss == 0


class TestNoise:
    def test_variance_mean_and_independence(self):
        """200,000 draws: the standard error of a correlation is 0.0022, of the variance 0.3 %."""
        noise = Noise(2, 100_000, 3.0, torch.device("cpu"))
        noise.begin([1, 2], [4, 4])
        steps = []
        for _ in range(2):
            noise.draw(np.ones(2, dtype=bool))
            steps.append(noise.values.clone())
        draws = torch.cat([steps[0], steps[1]])  # row 1 and 2 of step 1, then of step 2
        assert draws.std() == pytest.approx(3.0, rel=0.01)
        assert abs(draws.mean()) < 0.03
        correlation = torch.corrcoef(draws) - torch.eye(4)
        assert correlation.abs().max() < 0.015
        neighbours = torch.corrcoef(torch.stack([draws[0][:-1], draws[0][1:]]))[0, 1]
        assert abs(neighbours) < 0.015

    def test_it_is_gaussian(self):
        from scipy.stats import kstest

        noise = Noise(1, 50_000, 0.5, torch.device("cpu"))
        noise.begin([7], [1])
        noise.draw(np.ones(1, dtype=bool))
        assert kstest(noise.values[0].numpy() / 0.5, "norm").pvalue > 1e-3

    def test_a_rows_noise_does_not_depend_on_its_neighbours(self):
        beside, alone = Noise(3, 50, 1.0, torch.device("cpu")), Noise(1, 50, 1.0, torch.device("cpu"))
        beside.begin([5, 6, 7], [1, 1, 1])
        alone.begin([6], [1])
        for active in ([True, True, True], [False, True, True]):
            beside.draw(np.array(active))
            alone.draw(np.ones(1, dtype=bool))
        assert torch.equal(beside.values[1], alone.values[0])

    def test_sums_are_noised_and_divided_by_the_nominal_size(self):
        noise = Noise(2, 1, 1.0, torch.device("cpu"))
        noise.begin([0, 0], [4, 10])
        noise.values.copy_(torch.tensor([[1.0], [2.0]]))
        assert noise.privatise(torch.tensor([[3.0], [8.0]])).tolist() == [[1.0], [1.0]]
        silent = Noise(1, 1, 0.0, torch.device("cpu"))
        silent.begin([0], [4])
        assert silent.privatise(torch.tensor([[6.0]])).tolist() == [[1.5]]
