"""What is neither parameter nor buffer goes from no client to the next, and no answer depends on its neighbours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import own_models
import pytest
import torch
from kept import kept_bytes
from torch import nn
from worlds import Tiny, world_of

from fedexp.core.errors import ConfigError
from fedexp.run.run import complete
from fedexp.simulation.world import World

GLOBAL: list[torch.Tensor] = []


class Layer(nn.Module):
    """A layer of 12 units with an attribute, which `forward` and the attribute's first value are given for."""

    def __init__(self, forward: Callable[[Any, torch.Tensor], torch.Tensor], kept: Any = None) -> None:
        super().__init__()
        self.kept, self.function = kept, forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self, x)


def hidden(layer: Any, x: torch.Tensor) -> torch.Tensor:
    x = x if layer.kept is None else x + 0.5 * layer.kept
    layer.kept = x.detach().mean(0)
    return x


def hidden_in_training(layer: Any, x: torch.Tensor) -> torch.Tensor:
    return hidden(layer, x) if layer.training else x


def counted(layer: Any, x: torch.Tensor) -> torch.Tensor:
    layer.kept += layer.training
    return x * (2 if layer.kept > 1000 else 1)


def listed(layer: Any, x: torch.Tensor) -> torch.Tensor:
    layer.kept.append(x.detach().mean())
    return x * torch.stack(layer.kept).mean()


def first_batch(layer: Any, x: torch.Tensor) -> torch.Tensor:
    return x + layer.kept.setdefault("mean", x.detach().mean())


def drawn(layer: Any, x: torch.Tensor) -> torch.Tensor:
    return x * float(layer.kept.random()) if layer.training else x


def in_global(_: Layer, x: torch.Tensor) -> torch.Tensor:
    GLOBAL.append(x.detach().mean())
    return x + GLOBAL[0]


def in_closure() -> Layer:
    calls = [0]

    def forward(_: Layer, x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return x * (2 if calls[0] > 1000 else 1)

    return Layer(forward)


CARRIED = {
    "1.kept changes from batch to batch": lambda: Layer(hidden),
    "1.kept changes": lambda: Layer(hidden_in_training),
    "1.kept changes from": lambda: Layer(counted, 0),
    "1.kept changes from batch": lambda: Layer(listed, []),
    "1.kept changes from batch to": lambda: Layer(first_batch, {}),
    r"1.kept changes from .* go from client to client": lambda: Layer(drawn, np.random.default_rng(0)),
    r"\S*test_carried_state.GLOBAL changes": lambda: Layer(in_global),
    r"calls \(closure of forward\) changes": in_closure,
}


def cached(layer: Any, x: torch.Tensor) -> torch.Tensor:
    layer.kept = torch.linspace(0, 1, 12) if layer.kept is None else layer.kept
    return x * layer.kept


def shown(layer: Any, x: torch.Tensor) -> torch.Tensor:
    layer.kept = x.sigmoid()
    return x * layer.kept


@pytest.fixture
def build(tiny: Tiny) -> Callable[..., World]:
    """The world of a run whose network has this layer of 12 units in its middle."""

    def make(layer: Callable[[], nn.Module], *words: str) -> World:
        return world_of(config(tiny, layer, *words))

    return make


def config(tiny: Tiny, layer: Callable[[], nn.Module], *words: str) -> dict[str, Any]:
    def network(facts: Any) -> nn.Module:
        return nn.Sequential(nn.Linear(facts.shape[0], 12), layer(), nn.Linear(12, facts.classes))

    own_models.LAYERS["tested"] = network
    return {**tiny(*words), "model": {"_target_": "own_models.Layered", "layers": "tested"}}


@pytest.mark.parametrize("told", CARRIED)
def test_what_moves_from_batch_to_batch_is_refused_by_name(build: Callable[..., World], told: str):
    GLOBAL.clear()
    with pytest.raises(ConfigError, match=rf"^model=own_models.Layered: {told}") as refused:
        build(CARRIED[told])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("forward", [cached, shown])
def test_a_cache_and_what_nobody_reads_stay_and_any_number_of_workers_gives_the_same(
    tiny: Tiny, forward: Callable[..., torch.Tensor], engine: str, tmp_path: Path
):
    for workers in ("1", "2"):
        (tmp_path / workers).mkdir()
        words = (f"engine={engine}", f"engine.workers={workers}", "rounds=2")
        complete(config(tiny, lambda: Layer(forward), *words), tmp_path / workers)
    assert kept_bytes(tmp_path / "1") == kept_bytes(tmp_path / "2")


class Clamped(nn.Linear):
    """Writes to its weights."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self.weight.data.clamp_(-0.1, 0.1)
        return super().forward(input)


class Averaged(nn.Module):
    """Moves its statistics in evaluation, too."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.lerp_(x.detach().mean(0), 0.1)
        return x - self.mean


@pytest.mark.parametrize(
    ("layer", "name"), [(lambda: Clamped(12, 12), "1.weight"), (Averaged, "1.mean")], ids=["parameter", "buffer"]
)
def test_forward_writes_to_no_entry(build: Callable[..., World], layer: Callable[[], nn.Module], name: str):
    with pytest.raises(ConfigError, match=f"forward must not write to .*, but writes to {name};"):
        build(layer)


def test_forward_does_not_write_to_its_examples(tiny: Tiny):
    own_models.LAYERS["tested"] = lambda facts: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, facts.classes))
    with pytest.raises(ConfigError, match="must not write to the examples"):
        world_of({**tiny(), "model": {"_target_": "own_models.Layered", "layers": "tested"}})


class Along(nn.Module):
    """An LSTM that takes the batch for time."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x[:, None])[0][:, 0]


NEIGHBOURS: dict[str, Callable[[], nn.Module]] = {
    "mean": lambda: Layer(lambda _, x: x - x.mean(0)),
    "size": lambda: Layer(lambda _, x: x / len(x)),
    "shift": lambda: Layer(lambda _, x: x + 0.1 * x.roll(1, 0)),
    "squeeze": lambda: Layer(lambda _, x: x[:, :, None].squeeze()),
    "lstm": Along,
    "statistics": lambda: within(Layer(lambda _, x: nn.functional.batch_norm(x, None, None, training=True)), 3, 4),
}


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_an_answer_does_not_depend_on_its_neighbours(build: Callable[..., World], kind: str):
    with pytest.raises(ConfigError, match=r"^model=own_models.Layered: in evaluation forward must say the same"):
        build(NEIGHBOURS[kind])


NORMS: dict[str, Callable[[], nn.Module]] = {
    "BatchNorm1d": lambda: nn.BatchNorm1d(12, track_running_stats=False),
    "BatchNorm2d": lambda: within(nn.BatchNorm2d(3, track_running_stats=False), 3, 2, 2),
    "BatchNorm3d": lambda: within(nn.BatchNorm3d(3, track_running_stats=False), 3, 1, 2, 2),
    "SyncBatchNorm": lambda: nn.SyncBatchNorm(12, track_running_stats=False),
}


def within(layer: nn.Module, *shape: int) -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, shape), layer, nn.Flatten())


@pytest.mark.parametrize("kind", NORMS)
def test_batch_normalisation_needs_running_statistics(build: Callable[..., World], kind: str):
    with pytest.raises(ConfigError, match="must have running statistics, got track_running_stats=False"):
        build(NORMS[kind])


def test_normalisation_of_each_example_is_evaluated_alike_in_any_chunk(tiny: Tiny):
    def layer() -> nn.Module:
        return within(nn.InstanceNorm1d(3), 3, 4)

    losses = []
    for chunk in (1, 20):
        world = world_of(config(tiny, layer, f"engine.evaluation_chunk={chunk}"))
        losses.append(world.score(world.first, world.test).loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_answers_in_bfloat16_are_compared_within_their_rounding(build: Callable[..., World]):
    build(nn.Tanh, "engine.precision=bf16")
