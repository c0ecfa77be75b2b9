"""A loss of a user's own is what clients descend and what is measured, in every engine and under privacy."""

from typing import Any

import numpy as np
import pytest
import torch
from own_losses import squares
from torch import nn
from torch.nn import functional as F
from worlds import Tiny, first_round, train_first_round, world_of

from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout
from fedexp.simulation import context
from fedexp.simulation.rounds import run_rounds
from fedexp.training.per_example.clipped_sum import ClippedGradientSum

ENGINES = ("loop", "stacked")
UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")


def costing(config: dict[str, Any], cost: str) -> dict[str, Any]:
    return {**config, "loss": {"_target_": "own_losses.Costing", "cost": cost}}


@pytest.mark.usefixtures("_double")
def test_the_loop_descends_it_as_plain_pytorch_does(tiny: Tiny):
    world = world_of(costing(tiny(*UNEQUAL), "squares"))
    task, network = first_round(world), world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    for row, batches in enumerate(task.batches):
        network.load_state_dict(world.layout.views(world.first.flat.clone()))
        descend = torch.optim.SGD(network.parameters(), lr=world.exp.local.lr)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
            descend.zero_grad()
            squares(network(world.train.x[index].double()), world.train.y[index]).mean().backward()
            descend.step()
        out = world.trainer.run(task, np.array([row]))
        torch.testing.assert_close(out[0, :-2], world.layout.flatten(network), atol=1e-9, rtol=0)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("words", [(), ("privacy=dp_sgd", "privacy.clip=0.5", "privacy.noise_multiplier=0.5")])
def test_the_engines_agree(tiny: Tiny, words: tuple[str, ...]):
    private = (*words, "privacy.delta=1e-3") if words else ()
    one, other = (
        train_first_round(world_of(costing(tiny(f"engine={engine}", *UNEQUAL, *private), "squares")))
        for engine in ENGINES
    )
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0, equal_nan=True)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_usual_loss_written_out_is_the_usual_one(tiny: Tiny, engine: str):
    config = tiny(f"engine={engine}", *UNEQUAL)
    usual, plain = (train_first_round(world_of(each)) for each in (costing(config, "usual"), config))
    torch.testing.assert_close(usual, plain, atol=1e-12, rtol=0, equal_nan=True)


@pytest.mark.parametrize("layer", [nn.Linear(3, 3), nn.PReLU(3)], ids=["taped", "formed"])
def test_the_gradients_of_examples_are_those_of_the_loss(layer: nn.Module):
    network = nn.Sequential(nn.Linear(4, 3), layer)
    x, y, clip = torch.rand(5, 4), torch.arange(5) % 3, 0.7
    by_hand = []
    for place in range(5):
        loss = squares(network(x[place : place + 1]), y[place : place + 1]).sum()
        grads = torch.autograd.grad(loss, list(network.parameters()))
        by_hand.append(torch.cat([grad.flatten() for grad in grads]))
    wanted = torch.stack([row / max(1.0, float(row.norm()) / clip) for row in by_hand])
    layout = Layout.of(network)
    clipped = ClippedGradientSum(network, layout, clip, x[:1], squares)
    row = layout.flatten(network)
    torch.testing.assert_close(clipped.per_example(row, row[:0], x, y), wanted)
    torch.testing.assert_close(clipped.batch_sum(row, x, y)[0], wanted.sum(dim=0))


def test_a_part_that_asks_for_gradients_gets_those_of_the_loss(tiny: Tiny):
    world = world_of(costing(tiny("model.hidden=[]"), "squares"))
    index = np.arange(2)
    x, y = world.train.inputs(torch.from_numpy(index)), world.train.y[:2]
    weight, bias = world.layout.views(world.first.flat).values()
    error = 2 * (x @ weight.T + bias - F.one_hot(y, len(bias)))
    by_hand = torch.cat([(error[:, :, None] * x[:, None]).flatten(1), error], dim=1)
    torch.testing.assert_close(world.gradients.per_example(world.first.flat, index), by_hand)


def test_what_is_told_of_training_and_what_is_measured_is_the_loss(tiny: Tiny):
    world = world_of(costing(tiny("rounds=1", "local.batch_size=full", "model.hidden=[]"), "squares"))
    ((_, row, sent),) = run_rounds(world.exp, world, world.initial_state())
    shard = world.partition.shard(int(sent.owner[0]))
    weight, bias = world.layout.views(world.first.flat).values()
    logits = world.train.inputs(torch.from_numpy(shard)) @ weight.T + bias
    labels = world.train.y[torch.from_numpy(shard)]
    assert sent.loss_before[0] == pytest.approx(squares(logits, labels).mean().item(), rel=1e-5)
    assert row["train_loss"] == pytest.approx(np.average(sent.loss_after, weights=sent.examples))
    asked = context.make_context(world, 1).audit.example_losses(world.first, shard)
    torch.testing.assert_close(torch.from_numpy(asked).float(), squares(logits, labels))


@pytest.mark.parametrize("engine", ["loop", "stacked", "auto"])
@pytest.mark.parametrize(
    ("cost", "came"),
    [
        ("mean", r"torch.float32 \[\]"),
        ("classwise", r"torch.float32 \[\d, 10\]"),
        ("whole", r"torch.int64 \[\d\]"),
        ("number", "float"),
    ],
)
def test_anything_but_a_number_for_each_example_is_refused(tiny: Tiny, engine: str, cost: str, came: str):
    wanted = r"a number for every example, torch.float32 \[\d\]"
    said = rf"^loss=own_losses.Costing: per_example must return {wanted}, got {came}$"
    with pytest.raises(ConfigError, match=said):
        world_of(costing(tiny(f"engine={engine}", "scenario.clients=40", "scenario.participants=32"), cost))
