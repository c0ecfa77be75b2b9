"""A network is made of plain modules; parameters that are tied stay tied, layers that are left out get zeros."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import own_models
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from worlds import Tiny, first_round, world_of

from fedexp.core.errors import ConfigError
from fedexp.simulation.world import World

Make = Callable[[Any], nn.Module]


@pytest.fixture
def build(tiny: Tiny) -> Callable[..., World]:
    """The world of a run with this network."""

    def make(network: Make, *words: str) -> World:
        own_models.LAYERS["tested"] = network
        return world_of({**tiny(*words), "model": {"_target_": "own_models.Layered", "layers": "tested"}})

    return make


class Through(nn.Module):
    """Two linear layers, and a function of what lies between them."""

    def __init__(self, facts: Any, between: Callable[[torch.Tensor], torch.Tensor] = torch.tanh) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(facts.shape[0], 12), nn.Linear(12, facts.classes)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.between(self.first(x)))


class Bare(nn.Module):
    """Forgets the constructor of its base."""

    def __init__(self) -> None:
        self.size = 3


class Refusing(torch.autograd.Function):
    """Has no backward pass."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> torch.Tensor:
        raise NotImplementedError("none\nat all")


class _CompiledFunction(nn.Module):
    """What torch.compile gives for a module where it is not switched off."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._orig_mod = network


def within(layer: Callable[[], nn.Module]) -> Make:
    return lambda facts: nn.Sequential(nn.Linear(facts.shape[0], 12), layer(), nn.Linear(12, facts.classes))


def on_meta(facts: Any) -> nn.Module:
    with torch.device("meta"):
        return Through(facts)


def scripted() -> torch.jit.ScriptModule:
    layer = torch.jit.ScriptModule()
    layer.train()
    return layer


def reentrant(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(torch.tanh, x, use_reentrant=True)


def overwritten(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    y += 1
    return y


ONE = nn.Linear(8, 10)

REFUSED: dict[str, Make] = {
    "0.weight must have a shape before the first example": lambda facts: nn.Sequential(nn.LazyLinear(facts.classes)),
    "1.weight must have a shape": within(nn.LazyBatchNorm1d),
    "first.weight must have values, but lies on the device meta": on_meta,
    r"Bare must call super\(\).__init__\(\) first": lambda _: Bare(),
    r"1 \(Bare\) must call super": within(Bare),
    "1 must not be compiled; leave out torch.jit": within(scripted),
    "network must not be compiled; leave out torch.compile": lambda facts: _CompiledFunction(Through(facts)),
    "forward must have gradients .* NotImplementedError: none": lambda facts: Through(facts, Refusing.apply),
    "forward must have gradients .* inplace operation": lambda facts: Through(facts, overwritten),
    "forward must have gradients .* use_reentrant=False": lambda facts: Through(facts, reentrant),
    "forward must take examples .* SystemExit: 0": lambda facts: Through(facts, lambda _: exit(0)),
    "network must make every parameter anew": lambda _: ONE,
    "parameter weight must begin with the same numbers": lambda _: copy.deepcopy(ONE).apply(another),
}


def another(layer: nn.Module) -> None:
    with torch.no_grad():
        ONE.weight += 1
    layer.load_state_dict(ONE.state_dict())


@pytest.mark.filterwarnings("ignore:.*requires_grad=True", "ignore:.*jit", "ignore:Lazy modules")
@pytest.mark.parametrize("told", REFUSED)
def test_what_no_row_can_hold_or_nothing_can_train_is_refused_by_name(build: Callable[..., World], told: str):
    with pytest.raises(ConfigError, match=f"^model=own_models.Layered: {told}") as refused:
        build(REFUSED[told])
    assert "\n" not in str(refused.value)


def tied(facts: Any, *, by_memory: bool = False) -> nn.Module:
    network: Any = nn.Sequential(nn.Linear(facts.shape[0], 12), nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 10))
    if by_memory:
        network[2].weight.data = network[1].weight.data
    else:
        network[2].weight = network[1].weight
    return network


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_parameters_that_share_their_memory_are_trained_as_one(build: Callable[..., World], engine: str):
    by_memory, by_name = (
        build(lambda facts, way=way: tied(facts, by_memory=way), f"engine={engine}") for way in (True, False)
    )
    assert by_memory.layout == by_name.layout
    rows = [world.trainer.run(first_round(world), np.arange(3)) for world in (by_memory, by_name)]
    assert torch.equal(*rows)
    alone = build(tied, "engine=loop")
    torch.testing.assert_close(rows[0], alone.trainer.run(first_round(alone), np.arange(3)), atol=1e-9, rtol=0)


def test_parameters_that_share_a_part_of_their_memory_are_refused(build: Callable[..., World]):
    def network(facts: Any) -> nn.Module:
        made: Any = tied(facts)
        made[2].weight = nn.Parameter(made[1].weight.data.T)
        return made

    with pytest.raises(ConfigError, match=r"parameters 1.weight and 2.weight must not share a part of their memory"):
        build(network)


class Dropping(nn.Module):
    """A layer that is left out in half of the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x) if not self.training or torch.rand(()).item() > 0.5 else x


def test_a_layer_that_is_left_out_has_no_gradient_there(build: Callable[..., World]):
    world = build(within(Dropping), "local.batch_size=8", "local.epochs=2")
    task = first_round(world)
    rows = world.trainer.run(task, np.arange(6))
    assert rows.isfinite().all()
    assert torch.equal(world.trainer.run(task, np.array([4]))[0], rows[4])
    inner = world.layout.columns(["1.inner.weight", "1.inner.bias"])
    moved = (rows[:, inner] != world.first.flat[inner]).any(dim=1)
    assert moved.any()


def test_what_reads_the_numbers_by_numpy_trains_in_the_loop_and_is_refused_in_the_stack(build: Callable[..., World]):
    def network(facts: Any) -> nn.Module:
        return Through(facts, lambda x: x + torch.from_numpy(x.detach().numpy() * 2))

    assert build(network, "engine=loop").choice.name == "loop"
    with pytest.raises(ConfigError, match=r"engine=stacked cannot train this model: .*; use engine=loop"):
        build(network, "engine=stacked")


PRIVATE = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=0", "privacy.delta=1e-3", "local.batch_size=4")


class Recurrent(nn.Module):
    """A layer that gives more than one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(12, 12, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(x[:, None])[0][:, 0]


class Branching(nn.Module):
    """Looks at a number of each example, which it cannot where several go through at once."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = [row * self.scale if float(row.detach().sum()) > 0 else row + self.scale for row in x]
        return torch.stack(rows)


@pytest.mark.filterwarnings("ignore")  # PyTorch's, about what it cannot do for several examples at once
@pytest.mark.parametrize("layer", [Recurrent, Branching])
def test_a_network_that_an_engine_cannot_train_is_refused_before_the_first_round(
    build: Callable[..., World], layer: Callable[[], nn.Module]
):
    with pytest.raises(ConfigError, match=r"^engine=loop cannot train this model by local=sgd: \w+Error: "):
        build(within(layer), "engine=loop", *PRIVATE)
