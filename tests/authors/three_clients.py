"""A problem of three clients and nine examples, on which methods are compared with their authors' programs.

Each test file is for one method. It says which program of its authors ran, at which commit, and with which settings; it
holds what came out as numbers, and every difference in formula from ours. The programs ran on these very examples,
batches and first weights, in float64 and apart from this repository. Nothing here is drawn: weights and examples are
short binary fractions, batches follow the data.

A model is 21 numbers: hidden weights [3, 2], hidden biases [3], output weights [3, 3], output biases [3].
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core.values import Layout, State
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.world import World

INPUTS = (
    *((1.0, 0.5), (-0.75, 0.25), (0.5, -1.0), (0.25, 1.25)),
    *((-1.0, -0.5), (0.75, 0.75)),
    *((0.125, -0.25), (1.5, -0.5), (-0.5, 1.0)),
)
LABELS = (0, 1, 0, 1, 2, 0, 1, 2, 2)
OWNERS = (0, 0, 0, 0, 1, 1, 2, 2, 2)
HIDDEN_WEIGHTS = ((0.5, -0.25), (0.25, 0.75), (-0.5, 0.125))
HIDDEN_BIASES = (0.125, -0.25, 0.0625)
OUTPUT_WEIGHTS = ((0.75, -0.5, 0.25), (-0.25, 0.5, 0.375), (0.125, 0.25, -0.625))
OUTPUT_BIASES = (0.0, 0.125, -0.125)
CLIENTS = slice(0, 4), slice(4, 6), slice(6, 9)
BODY, HEAD = slice(0, 9), slice(9, 21)  # the columns of the hidden layer, and those of the output layer


def network() -> nn.Sequential:
    """A hidden layer of three tanh units, with the first weights."""
    layers = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 3))
    entries = (HIDDEN_WEIGHTS, HIDDEN_BIASES, OUTPUT_WEIGHTS, OUTPUT_BIASES)
    with torch.no_grad():
        for parameter, values in zip(layers.parameters(), entries, strict=True):
            parameter.copy_(torch.tensor(values))
    return layers


def unbiased() -> nn.Sequential:
    """The same without output biases: eighteen numbers."""
    layers = network()
    layers[2].register_parameter("bias", None)
    return layers


def linear() -> nn.Module:
    """The output layer's rows without their last entries, as a model of nine numbers that is linear in the examples."""
    layer = nn.Linear(2, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(OUTPUT_WEIGHTS)[:, :2])
        layer.bias.copy_(torch.tensor(OUTPUT_BIASES))
    return layer


def matrix() -> nn.Module:
    """The same without biases: six numbers in one matrix."""
    layer = nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(OUTPUT_WEIGHTS)[:, :2])
    return layer


def first_model(make: Callable[[], nn.Module] = network) -> torch.Tensor:
    """The first weights of a network, as one row."""
    return Layout.of(make()).flatten(make())


def three_clients(tiny: Tiny, folder: Path, *words: str) -> World:
    """The world of this problem: all clients take part."""
    return world_of_examples(tiny, folder, (INPUTS, LABELS, OWNERS), "authors.three_clients:network", *words)


def world_of_examples(
    tiny: Tiny, folder: Path, examples: tuple[Sequence[object], Sequence[int], Sequence[int]], factory: str, *words: str
) -> World:
    """The world of three clients with these inputs, labels and owners of examples, who all take part."""
    x, y, owners = np.array(examples[0], dtype=np.float32), np.array(examples[1]), np.array(examples[2])
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    np.save(folder / "owners.npy", owners)
    files = (f"dataset.path={folder}/data.npz", f"federation.path={folder}/owners.npy", f"model.factory={factory}")
    parts = ("dataset=npz", "federation=file", "model=torch", "scenario.clients=3", "scenario.participants=3")
    return world_of(tiny(*parts, *files, *words))


def states(world: World) -> list[State]:
    """The states after each round of a run."""
    return [state for state, _, _ in rounds_with_rows(world)]


def gradient(model: torch.Tensor, examples: slice, make: Callable[[], nn.Module] = network) -> torch.Tensor:
    """The gradient of the mean cross-entropy of some examples at a model, numbers like its own."""
    at = model.clone().requires_grad_()
    return torch.autograd.grad(mean_loss(at, examples, make), at)[0]


def mean_loss(model: torch.Tensor, examples: slice, make: Callable[[], nn.Module] = network) -> torch.Tensor:
    """The mean cross-entropy of some examples at a model."""
    layers = make()
    logits = functional_call(layers, Layout.of(layers).views(model), (torch.tensor(INPUTS)[examples],))
    return nn.functional.cross_entropy(logits, torch.tensor(LABELS)[examples])


def own_models(world: World, state: State) -> torch.Tensor:
    """The models that the three clients use, `[3, 21]`."""
    return personal_models(world.exp, world, state, np.arange(3))


def assert_agrees(ours: torch.Tensor, numbers: str, within: float = 1e-8) -> None:
    """Checks that a model, or several, are those that the authors' program came to, up to a relative error."""
    assert_same(ours, read_numbers(numbers).reshape(ours.shape), within)


def read_numbers(text: str) -> torch.Tensor:
    """The numbers of a text, one after the other, `[n]`."""
    return torch.tensor([float(word) for word in text.split()])


def assert_same(ours: torch.Tensor, theirs: torch.Tensor, within: float = 1e-8) -> None:
    """Checks that models are the same but for rounding, as of the ten digits that are written down."""
    assert ours.dtype == torch.float64
    torch.testing.assert_close(ours, theirs, rtol=within, atol=within / 100)


def assert_parts_agree(world: World, parts: tuple[slice, slice], *rounds: tuple[str, str]) -> None:
    """Checks what is shared in the global model after each round, and what is not in the clients' models."""
    shared, personal = parts
    for state, (shared_numbers, personal_numbers) in zip(states(world), rounds, strict=True):
        assert_agrees(state.models[0].flat[shared], shared_numbers)
        assert_agrees(own_models(world, state)[:, personal], personal_numbers)
