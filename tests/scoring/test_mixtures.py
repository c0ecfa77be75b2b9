"""Mixtures of models: the pass that takes them together equals one network after another."""

import copy

import numpy as np
import pytest
import torch
from networks import published
from torch import nn
from training.chain_networks import CHAINS
from worlds import world_of

from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.layers import AddChannel
from fedexp.parts.model.char_lstm import CharLSTM
from fedexp.parts.model.complex_cnn import ComplexCNN
from fedexp.parts.model.har_cnn import HARCNN
from fedexp.parts.model.keras_cnn import KerasCNN
from fedexp.parts.model.mlp import MLP
from fedexp.scoring.side_by_side import BatchedEvaluator, SequentialEvaluator, make_evaluator, mix_models
from fedexp.simulation import context

MODELS = [
    (MLP(), (1, 8, 8)),
    (MLP(hidden=()), (5,)),
    (published("simple_cnn"), (3, 12, 12)),
    (ComplexCNN(), (3, 16, 16)),
    (ComplexCNN(norm="group"), (3, 16, 16)),
    (KerasCNN(), (1, 8, 8)),
    (HARCNN(), (6, 32)),
    (HARCNN(), (40,)),
    (MLP(hidden=(5, 4), dropout=0.5), (6,)),
    (published("cnn_2017"), (1, 8, 8)),
    (published("two_conv_dropout"), (1, 16, 16)),
    (published("pfl_cnn"), (1, 8, 8)),
]
NETWORKS = {
    **CHAINS,
    "a norm first": (lambda: nn.Sequential(nn.GroupNorm(1, 2), nn.Conv2d(2, 3, 2), nn.Flatten()), (2, 3, 3)),
    "features as a signal": (
        lambda: nn.Sequential(nn.Linear(5, 6), AddChannel(), nn.Conv1d(1, 2, 3), nn.Flatten()),
        (5,),
    ),
}
ALONE = [(published("opacus_cnn"), Facts((1, 14, 14), 4, 9)), (CharLSTM(hidden=5), Facts((5,), 4, 9, vocabulary=7))]


def rows_of(layout: Layout, count: int) -> torch.Tensor:
    rows = torch.randn((count, layout.size), dtype=torch.float64) * 0.3
    rows[:, layout.parameters :] = rows[:, layout.parameters :].abs() + 0.5  # variances are positive
    return rows


def test_mixtures_by_hand():
    rows = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    mix = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    assert mix_models(mix, rows).tolist() == [[1.0, 2.0], [2.0, 4.0], [2.5, 5.0]]


@pytest.mark.parametrize(("model", "shape"), MODELS, ids=lambda value: str(getattr(value, "__class__", value).__name__))
@pytest.mark.parametrize("count", [2, 7])
def test_side_by_side_equals_one_by_one(model, shape, count: int):
    network = model.network(Facts(shape, 4, 9)).double()
    layout = Layout.of(network)
    evaluator = make_evaluator(network, layout, shape)
    assert isinstance(evaluator, BatchedEvaluator)
    rows, x = rows_of(layout, 3), torch.randn((6, *shape), dtype=torch.float64)
    mix = torch.rand((count, 3), dtype=torch.float64)
    mix /= mix.sum(dim=1, keepdim=True)
    alone = evaluator.logits(None, rows, x)
    torch.testing.assert_close(alone, SequentialEvaluator(network, layout).logits(None, rows, x), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(alone, SequentialEvaluator(network, layout).logits(torch.eye(3).double(), rows, x))
    together = evaluator.logits(mix, rows, x)
    torch.testing.assert_close(
        together, SequentialEvaluator(network, layout).logits(mix, rows, x), rtol=1e-9, atol=1e-9
    )
    assert together.shape == (count, 6, 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_chain_is_evaluated_as_it_is_one_by_one(name: str):
    make, shape = NETWORKS[name]
    network = make().double().eval()
    layout, x = Layout.of(network), torch.randn((6, *shape), dtype=torch.float64)
    rows = rows_of(layout, 3)
    logits = make_evaluator(network, layout, shape).logits(None, rows, x)
    torch.testing.assert_close(logits, SequentialEvaluator(network, layout).logits(None, rows, x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("model", "facts"), ALONE, ids=["strided", "lstm"])
def test_what_is_no_chain_of_known_layers_is_mixed_one_by_one(model, facts: Facts):
    network = model.network(facts).double().eval()
    layout = Layout.of(network)
    rows, mix = rows_of(layout, 3), torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], dtype=torch.float64)
    x = torch.arange(20).view(4, 5) % 7 if facts.vocabulary else torch.randn(4, *facts.shape, dtype=torch.float64)
    evaluator = make_evaluator(network, layout, tuple(x.shape[1:]))
    assert isinstance(evaluator, SequentialEvaluator)
    found = evaluator.logits(mix, rows, x)
    for one, logits in zip(mix, found, strict=True):
        alone = copy.deepcopy(network)
        alone.load_state_dict(layout.views(one @ rows))
        torch.testing.assert_close(logits, alone(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("model", "shape"), MODELS[:2])
def test_the_first_layer_of_mixtures_is_the_mixture_of_first_layers(model, shape):
    network = model.network(Facts(shape, 4, 9)).double()
    layout = Layout.of(network)
    rows, x, mix = rows_of(layout, 3), torch.randn((6, *shape), dtype=torch.float64), torch.rand((5, 3)).double()
    way = make_evaluator(network, layout, shape)
    assert isinstance(way, BatchedEvaluator)
    given = way.first_layer(rows, x)
    assert given.shape[:2] == (3, 6)
    found = way.later_logits(way.later_entries(mix, rows), mix, given)
    torch.testing.assert_close(found, SequentialEvaluator(network, layout).logits(mix, rows, x), rtol=1e-9, atol=1e-9)


def test_the_first_layer_is_worked_out_once_for_the_same_rows(tiny, monkeypatch):
    world = world_of(tiny("evaluation.validation=true"))
    first = world.mixture_scorer.first_layer
    assert first is not None
    counted, plain = [], first.evaluator.first_layer
    monkeypatch.setattr(first.evaluator, "first_layer", lambda rows, x: counted.append(len(rows)) or plain(rows, x))
    rows, ctx = torch.stack([world.first.flat, torch.randn(world.layout.size)]), context.make_context(world, 1)
    alone = ctx.validation.mixture_losses(np.array([[0.25, 0.75]]), rows)
    both = ctx.validation.mixture_losses(np.array([[0.25, 0.75], [1.0, 0.0]]), rows)
    assert counted == [2]
    assert both[0] == pytest.approx(alone[0], rel=1e-6)
    other = rows.clone()
    ctx.validation.mixture_losses(np.array([[1.0, 0.0]]), other)
    assert counted == [2, 2]
    del other
    assert not first.blocks, "forgotten with the rows"


def test_places_of_the_validation_data_are_the_same_all_run_long(tiny):
    world = world_of(tiny("evaluation.validation=true"))
    rows, mix = torch.stack([world.first.flat, torch.randn(world.layout.size)]), np.array([[0.25, 0.75], [1.0, 0.0]])
    size = context.make_context(world, 1).validation.size
    begin, rest = (
        context.make_context(world, 1).validation.mixture_losses(mix, rows, part)
        for part in (range(10), range(10, size))
    )
    whole = context.make_context(world, 2).validation.mixture_losses(mix, rows)
    assert (10 * begin + (size - 10) * rest) / size == pytest.approx(whole, rel=1e-6)
    assert begin != pytest.approx(whole, rel=1e-3)
    assert context.make_context(world, 7).validation.mixture_losses(mix, rows, range(10)).tolist() == begin.tolist()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), (1, 4, 4)),
        (nn.Conv2d(1, 2, 3, stride=2), (1, 4, 4)),
        (nn.Conv2d(1, 2, 3, dilation=2), (1, 5, 5)),
        (nn.Conv2d(1, 2, 3, bias=False), (1, 4, 4)),
        (nn.Conv2d(1, 2, 3, padding="same"), (1, 4, 4)),
        (nn.Conv1d(2, 2, 3, groups=2), (2, 4)),
        (nn.Linear(3, 2, bias=False), (3,)),
        (nn.GroupNorm(1, 2, affine=False), (2, 4)),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(2)), (1, 4, 4)),
        (nn.Linear(3, 2), (4, 3)),
        (nn.Sequential(nn.Linear(6, 4), nn.GroupNorm(1, 4)), (6,)),
        (nn.Sequential(nn.Linear(2, 2), nn.Tanh()), (2,)),
    ],
)
def test_an_odd_layer_or_an_unknown_one_is_taken_one_by_one(layer: nn.Module, shape: tuple[int, ...]):
    network = nn.Sequential(layer, nn.Flatten())
    layout, x = Layout.of(network), torch.randn(3, *shape)
    rows = torch.randn(2, layout.size)
    evaluator = make_evaluator(network, layout, shape)
    assert isinstance(evaluator, SequentialEvaluator)
    for row, logits in zip(rows, evaluator.logits(None, rows, x), strict=True):
        torch.testing.assert_close(logits, torch.func.functional_call(network, layout.views(row), (x,)))


@pytest.mark.parametrize(
    "pool", [nn.MaxPool2d(2), nn.MaxPool2d(3), nn.MaxPool2d(2, ceil_mode=True), nn.MaxPool2d(2, 1)]
)
def test_pooling_side_by_side_is_pooling(pool: nn.MaxPool2d):
    network = nn.Sequential(nn.Conv2d(1, 2, 2), pool, nn.Flatten())
    layout, x = Layout.of(network), torch.randn(3, 1, 8, 6)
    rows = torch.randn(2, layout.size)
    torch.testing.assert_close(
        make_evaluator(network, layout, (1, 8, 6)).logits(None, rows, x),
        SequentialEvaluator(network, layout).logits(None, rows, x),
    )


def test_losses_of_mixtures_and_of_clients_equal_plain_evaluation(tiny):
    world = world_of(tiny("evaluation.validation=true", "evaluation.validation_fraction=0.4"))
    exp = world.exp
    rows = torch.stack([world.first.flat, torch.randn(world.layout.size) * 0.1])
    mix = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    losses = context.make_context(world, 1).validation.mixture_losses(mix, rows)
    network = exp.model.network(exp.dataset.facts(exp.data_dir))
    assert world.validation is not None
    for row, loss in zip(mix_models(torch.from_numpy(mix), rows), losses, strict=True):
        logits = torch.func.functional_call(network, world.layout.views(row), (world.validation.inputs(slice(None)),))
        assert float(nn.functional.cross_entropy(logits, world.validation.y)) == pytest.approx(loss, rel=1e-5)
    assert context.make_context(world, 1).validation.losses(rows) == pytest.approx(losses[:2], rel=1e-5)
    some = np.array([7, 0, 30])
    assert context.make_context(world, 1).validation.size == len(world.validation) == 48
    for row, loss in zip(rows, context.make_context(world, 1).validation.losses(rows, some), strict=True):
        logits = torch.func.functional_call(network, world.layout.views(row), (world.validation.inputs(slice(None)),))
        loss_of_some = nn.functional.cross_entropy(logits[some], world.validation.y[some])
        assert float(loss_of_some) == pytest.approx(loss, rel=1e-5)
    owner = np.array([4, 1])
    seen = context.make_context(world, 1).losses(owner), context.make_context(world, 1).losses(owner, power=2)
    for position, client in enumerate(owner):
        index = torch.from_numpy(world.partition.shard(client))
        logits = torch.func.functional_call(network, world.layout.views(world.first.flat), (world.train.inputs(index),))
        each = nn.functional.cross_entropy(logits, world.train.y[index], reduction="none")
        assert seen[0][position] == pytest.approx(float(each.mean()), rel=1e-5)
        assert seen[1][position] == pytest.approx(float(each.square().mean()), rel=1e-5)


def test_a_layer_that_is_called_twice_is_called_twice_side_by_side():
    relu, x = nn.ReLU(), torch.randn(4, 3)
    network = nn.Sequential(nn.Linear(3, 5), relu, nn.Sequential(nn.Linear(5, 5), relu), nn.Linear(5, 2))
    layout = Layout.of(network)
    rows = torch.randn(2, layout.size)
    evaluator = make_evaluator(network, layout, (3,))
    assert isinstance(evaluator, BatchedEvaluator)
    torch.testing.assert_close(
        evaluator.logits(None, rows, x),
        SequentialEvaluator(network, layout).logits(None, rows, x),
    )
