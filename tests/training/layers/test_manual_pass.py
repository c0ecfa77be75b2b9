"""Passes that are written out give what autograd gives: the same bits in float32, the same numbers in float64.

Where a convolution and a pooling have a pass together, sums are taken in another order: there float32 is but near.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from composing import options
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm
from training.chain_networks import CHAINS
from worlds import Tiny, first_round, world_of

from fedexp.core.values import Layout
from fedexp.parts.layers import AddChannel, BatchNorm, Residual
from fedexp.training.client.keyed_random import KeyedRandom, keyed_random_for
from fedexp.training.client.parameter_views import view_parameters
from fedexp.training.client.precision import in_bf16
from fedexp.training.layers.manual_pass import manual_pass
from fedexp.training.loop.trainer import LoopTrainer

SEEDS, STEP = torch.tensor([3, 4], dtype=torch.int32), torch.zeros(())


class Slow(nn.Linear):
    """A subclass may do anything."""


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    **CHAINS,
    "one in, one out": (lambda: nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)), (1,)),
    "nested": (lambda: nn.Sequential(nn.Sequential(nn.Flatten(), nn.Linear(6, 4)), nn.ReLU(), nn.Linear(4, 2)), (2, 3)),
    "pools": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 1), nn.MaxPool2d(3, 1, 1)),
            *(nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(16, 2)),
        ),
        (2, 7, 6),
    ),
    "signals": (
        lambda: nn.Sequential(
            *(AddChannel(), nn.Conv1d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(3, 2, 2)),
            *(nn.MaxPool1d(2, 1, 1), nn.Flatten(), nn.Linear(8, 2)),
        ),
        (8,),
    ),
    "norms": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3), BatchNorm(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4)),
            *(nn.Tanh(), nn.Flatten(), nn.Linear(16, 2)),
        ),
        (2, 4, 4),
    ),
    "norms of signals": (
        lambda: nn.Sequential(
            nn.GroupNorm(1, 2), nn.Conv1d(2, 4, 3), nn.GroupNorm(4, 4), nn.Flatten(), nn.Linear(8, 2)
        ),
        (2, 4),
    ),
    "norm first": (lambda: nn.Sequential(BatchNorm(2), nn.Flatten(), nn.Linear(8, 2)), (2, 2, 2)),
}
POOLED = ("pools", "signals")
LEFT = {
    "subclass": (lambda: nn.Sequential(Slow(3, 2)), (3,)),
    "unknown": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Softplus()), (3,)),
    "parametrised": (lambda: nn.Sequential(weight_norm(nn.Linear(3, 2))), (3,)),
    "vectors in rows": (lambda: nn.Sequential(nn.Linear(3, 2)), (4, 3)),
    "padded all round": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")), (1, 4, 4)),
    "padded by a word": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding="same")), (1, 4, 4)),
    "without entries": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2, affine=False)), (1, 4, 4)),
    "nothing to train": (lambda: nn.Sequential(nn.ReLU()), (3,)),
    "a branch that writes to its input": (
        lambda: nn.Sequential(nn.Linear(3, 3), Residual(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3)))),
        (3,),
    ),
    "another shape beside": (lambda: nn.Sequential(nn.Linear(3, 1), Residual(nn.Linear(1, 3))), (3,)),
    "flat otherwise": (lambda: nn.Sequential(nn.Flatten(2), nn.Conv1d(1, 2, 3)), (1, 4, 4)),
}


def batch(shape: tuple[int, ...], dtype: torch.dtype, size: int = 5) -> torch.Tensor:
    """Made examples; images lie in memory as the engine has them."""
    x = torch.randn((size, *shape), generator=torch.Generator().manual_seed(5), dtype=dtype)
    return x.to(memory_format=torch.channels_last) if x.dim() == 4 else x


def both(network: nn.Module, x: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Outputs, the flat gradient of some number and the row afterwards (it has statistics): by autograd, by hand."""
    layout = Layout.of(network)
    row, flat = layout.flatten(network).clone(), torch.zeros(0, dtype=x.dtype).new_full((layout.parameters,), np.nan)
    view_parameters(network, layout, row)
    draws, before = keyed_random_for(network, x) or KeyedRandom(), row.clone()
    network.train()
    with draws.begin(SEEDS, STEP):
        seen = network(x)
    slope = torch.randn(seen.shape, generator=torch.Generator().manual_seed(6), dtype=x.dtype)
    grads = torch.autograd.grad(seen, list(network.parameters()), slope)
    found = [(seen.detach(), torch.cat([grad.reshape(-1) for grad in grads]), row.clone())]
    row.copy_(before)
    way = manual_pass(network, layout.views(flat), tuple(x.shape[1:]), draws.begin(SEEDS, STEP))
    assert way is not None
    with torch.no_grad():
        seen = way.forward(x)
        way.backward(slope.clone())
    return [*found, (seen, flat, row)]


@pytest.mark.parametrize("name", NETWORKS)
def test_bits_are_those_of_autograd(name: str):
    make, shape = NETWORKS[name]
    x = batch(shape, torch.float32)
    given = x.clone()
    for _ in range(10):  # networks: a sum in another order shows in some of them
        for theirs, ours in zip(*both(make(), x), strict=True):
            tolerance = 1e-5 if name in POOLED else 0
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    assert torch.equal(x, given)


@pytest.mark.parametrize("name", NETWORKS)
def test_bits_are_those_of_autocast_in_bfloat16(name: str):
    make, shape = NETWORKS[name]
    x, exact = batch(shape, torch.float32), make()
    lowered = in_bf16(copy.deepcopy(exact))
    for theirs, ours in zip(*both(lowered, x), strict=True):
        tolerance = 2e-2 if name in POOLED else 0
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
        assert ours.dtype == torch.float32
    assert not torch.equal(both(exact, x)[1][1], both(lowered, x)[1][1])


@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_are_those_of_autograd_in_double_precision(name: str):
    make, shape = NETWORKS[name]
    for theirs, ours in zip(*both(make().double(), batch(shape, torch.float64)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


PARTS: dict[str, Callable[[int], nn.Module]] = {
    "convolution": lambda c: nn.Conv2d(c, 4, 3, padding=1),
    "strided": lambda c: nn.Conv2d(c, 4, 3, stride=2, padding=2, bias=False),
    "relu": lambda c: nn.ReLU(),
    "tanh": lambda c: nn.Tanh(),
    "pool": lambda c: nn.MaxPool2d(2, 1),
    "batch norm": BatchNorm,
    "group norm": lambda c: nn.GroupNorm(2, c),
    "dropout": lambda c: nn.Dropout(0.2),
    "channels": lambda c: nn.Dropout2d(0.3),
}
FLAT = {"relu": nn.ReLU, "tanh": nn.Tanh, "dropout": lambda: nn.Dropout(0.5), "linear": lambda: nn.LazyLinear(3)}


@settings(max_examples=40)
@given(
    some.lists(some.sampled_from(sorted(PARTS)), max_size=5),
    some.lists(some.sampled_from(sorted(FLAT)), max_size=3),
    some.integers(2, 4),
)
def test_any_chain_has_the_gradient_of_autograd(deep: list[str], flat: list[str], size: int):
    channels, layers = 2, []
    for name in deep:
        layers.append(PARTS[name](channels))
        channels = 4 if isinstance(layers[-1], nn.Conv2d) else channels
    network = nn.Sequential(*layers, nn.Flatten(), *(FLAT[name]() for name in flat), nn.LazyLinear(2))
    network(x := batch((2, 8, 8), torch.float32, size))
    tolerance = 1e-4 if "pool" in deep else 0
    for theirs, ours in zip(*both(copy.deepcopy(network), x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    for theirs, ours in zip(*both(network.double(), x.double()), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["images", "signals"])
def test_pooling_and_relu_commute_to_the_bit(kind: str):
    """Wherever the largest is not above zero, not a number, or not alone."""
    values = torch.tensor([-torch.inf, -1.0, -0.0, 0.0, 1.0, 2.0, torch.inf, torch.nan])
    x = values[torch.randint(8, (6, 4, 12, 12), generator=torch.Generator().manual_seed(1))]
    x[0], x[1] = -1, x[1].clamp(max=0)
    pool: Any = {"images": F.max_pool2d, "signals": F.max_pool1d}[kind]
    x = (x if kind == "images" else x.flatten(2)).requires_grad_()
    first, last = pool(F.relu(x), 2), F.relu(pool(x, 2))
    assert torch.equal(first.nan_to_num(), last.nan_to_num())
    assert torch.equal(first.isnan(), last.isnan())
    slope = torch.randn(first.shape, generator=torch.Generator().manual_seed(2))
    one, other = (torch.autograd.grad(y, x, slope)[0] for y in (first, last))
    assert torch.equal(one.view(torch.int32), other.view(torch.int32))


@pytest.mark.parametrize("name", LEFT)
def test_anything_else_is_left_to_autograd(name: str):
    make, shape = LEFT[name]
    network = make()
    layout = Layout.of(network)
    assert manual_pass(network, layout.views(torch.zeros(layout.parameters)), shape, KeyedRandom()) is None


def test_a_linear_layer_by_hand():
    """y = 2 - 3 * 1 + 1 = 0 of x = (1, -1) with w = (2, 3), b = 1; the slope 5 gives dw = 5 x and db = 5."""
    network, flat = nn.Linear(2, 1), torch.zeros(3)
    layout = Layout.of(network)
    view_parameters(network, layout, torch.tensor([2.0, 3.0, 1.0]))
    way = manual_pass(network, layout.views(flat), (2,), None)
    assert way is not None
    with torch.no_grad():
        assert way.forward(torch.tensor([[1.0, -1.0]])).tolist() == [[0.0]]
        way.backward(torch.tensor([[5.0]]))
    assert flat.tolist() == [5.0, -5.0, 5.0]


def rows(config: dict[str, Any], out: bool, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """The rows that all clients train in the first round, with passes written out or not."""
    with monkeypatch.context() as patch:
        if not out:
            patch.setattr("fedexp.training.loop.trainer.manual_pass", lambda *_: None)
        world = world_of(config)
        assert isinstance(world.trainer, LoopTrainer)
        task = first_round(world)
        assert (world.trainer.manual_pass is not None) == (out and world.trainer.objective.is_loss_alone)
        return world.trainer.run(task, np.arange(len(task.batches)))


@pytest.mark.parametrize("option", sorted({*options("local")} - {"fedem"}))  # which trains mixtures alone
def test_every_rule_takes_the_same_steps_either_way(tiny: Tiny, option: str, monkeypatch: pytest.MonkeyPatch):
    layers = "model.layers=[conv 8 3, relu, conv 8 3, relu, flatten, linear]"
    config = tiny(f"local={option}", "model=simple_cnn", layers, "dataset.shape=[3,8,8]", "engine=loop")
    assert torch.equal(rows(config, True, monkeypatch), rows(config, False, monkeypatch))


@pytest.mark.parametrize(
    "words",
    [
        ("local.momentum=0.9", "local.weight_decay=0.01", "local.clip_norm=0.1"),
        ("local.momentum=0.9", "local.worker_momentum=true"),
        ("loss.label_smoothing=0.1",),
        ("loss.class_weights=[1,2,3,4,5,6,7,8,9,10]",),
        ("model=complex_cnn", "dataset.shape=[1,8,8]", "local.batch_size=7"),  # 20 = 7 + 7 + 6 examples
        ("model=complex_cnn", "dataset.shape=[1,8,8]", "local.batch_size=19"),  # the last batch has one
        ("augment=crop_flip", "dataset.shape=[3,8,8]"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("_narrow")
def test_so_do_other_settings(tiny: Tiny, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    config = tiny(*words, "engine=loop")
    assert torch.equal(rows(config, True, monkeypatch), rows(config, False, monkeypatch))


@pytest.mark.parametrize(
    "words", [("model=simple_cnn", "dataset.shape=[3,8,8]"), ("model=two_conv_dropout", "dataset.shape=[1,16,16]")]
)
@pytest.mark.usefixtures("_narrow")
def test_pooled_convolutions_take_the_same_steps_but_for_rounding(
    tiny: Tiny, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    config = tiny(*words, "engine=loop")
    torch.testing.assert_close(rows(config, True, monkeypatch), rows(config, False, monkeypatch), rtol=1e-4, atol=1e-6)
