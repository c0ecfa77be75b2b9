"""A small problem on which servers' rules are compared with the programs of their authors.

Nine examples of three clients, a network of twelve numbers, and batches in the order of the data: nothing is drawn.
The programs ran on the same in float64; what they came to is in the tests as numbers. A model is hidden weights
[2, 2], hidden biases [2], output weights [2, 2] and output biases [2], one after the other.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from authors.three_clients import assert_same, read_numbers, world_of_examples
from torch import nn
from worlds import Tiny, rounds_with_rows

from fedexp.core.values import Memory, Plan
from fedexp.parts import Context
from fedexp.parts.selector.random import Random
from fedexp.simulation.world import World

EXAMPLES = (
    ((0.5, -1.0), 0),
    ((1.25, 0.75), 1),
    ((-0.5, 0.25), 0),
    ((0.75, -0.25), 1),
    ((-1.0, 0.5), 1),
    ((0.25, 1.5), 0),
    ((1.0, 1.0), 1),
    ((-0.75, -0.5), 0),
    ((0.125, 0.625), 1),
)  # inputs and class
OWNERS = (0, 0, 0, 0, 1, 1, 2, 2, 2)
EQUAL_OWNERS = (0, 0, 0, 1, 1, 1, 2, 2, 2)
TWO_EPOCHS = ("local.epochs=2", "local.batch_size=2", "local.order=file")  # 4, 2 and 4 steps; 4 of everybody if equal
START = (0.5, -0.75, 0.25, 1.0, 0.125, -0.25, 0.75, -0.5, -0.25, 0.625, 0.0625, -0.125)


def network() -> nn.Module:
    """Two tanh units and two classes, with the first weights."""
    layers = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    nn.utils.vector_to_parameters(torch.tensor(START), layers.parameters())
    return layers


def three_clients(tiny: Tiny, folder: Path, *words: str, owners: Sequence[int] = OWNERS) -> World:
    """The world of this problem, of which everybody takes part unless `take_part` says otherwise."""
    inputs, classes = zip(*EXAMPLES, strict=True)
    return world_of_examples(tiny, folder, (inputs, classes, owners), "authors.servers:network", *words)


def take_part(monkeypatch: pytest.MonkeyPatch, *rounds: Sequence[int]) -> None:
    """Lets these clients take part in the first round, those in the second, and so on."""

    def choose(_: Random, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        return ctx.plan(np.array(rounds[ctx.round - 1])), memory

    monkeypatch.setattr(Random, "choose", choose)


def models(world: World) -> torch.Tensor:
    """The model after each round of a run, `[rounds, 12]`."""
    return torch.stack([state.models[0].flat for state, _, _ in rounds_with_rows(world)])


def numbers(text: str) -> torch.Tensor:
    """Numbers of a text, one model after the other, `[n, 12]`."""
    return read_numbers(text).reshape(-1, len(START))


def losses(model: torch.Tensor, owners: Sequence[int] = OWNERS) -> torch.Tensor:
    """The mean cross-entropy of a model `[12]` on the examples of each client, `[3]`."""
    layers = network()
    nn.utils.vector_to_parameters(model, layers.parameters())
    inputs, classes = (torch.tensor(column) for column in zip(*EXAMPLES, strict=True))
    example_losses = nn.functional.cross_entropy(layers(inputs), classes, reduction="none").detach()
    return torch.stack([example_losses[torch.tensor(owners) == client].mean() for client in range(3)])


def gradient(model: torch.Tensor, index: Sequence[int]) -> torch.Tensor:
    """The gradient `[12]` of the mean cross-entropy of these examples at a model `[12]`."""
    layers, examples = network(), [EXAMPLES[number] for number in index]
    nn.utils.vector_to_parameters(model, layers.parameters())
    inputs, classes = (torch.tensor(column) for column in zip(*examples, strict=True))
    loss = nn.functional.cross_entropy(layers(inputs), classes)
    return nn.utils.parameters_to_vector(torch.autograd.grad(loss, list(layers.parameters())))


def assert_agrees(ours: torch.Tensor, text: str) -> None:
    """Checks that models `[n, 12]` are those of the authors' program, but for rounding; all are in float64."""
    assert_same(ours, numbers(text), within=1e-9)
