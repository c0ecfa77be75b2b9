"""Models of users: their first values are kept, their draws seeded, and what cannot be seeded is refused."""

import random  # noqa: TID251 - what a user should not draw from
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import own_models
import pytest
import torch
from kept import kept_bytes
from torch import nn
from torch.nn import functional as F
from worlds import Tiny, first_round, world_of

from fedexp.core.errors import ConfigError
from fedexp.parts import BatchNorm
from fedexp.run.run import complete
from fedexp.run.state import checkpoint
from fedexp.simulation.world import World
from fedexp.verify import rerun

ENGINES = ("loop", "stacked")
UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8")


def own(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "model": {"_target_": "own_models.Reading"}}


@pytest.fixture
def made(tiny: Tiny) -> Iterator[Callable[..., World]]:
    """The world of a run whose network these layers are, behind a linear layer of 12."""

    def make(*layers: Callable[[], nn.Module], words: tuple[str, ...] = (), classes: int | None = None) -> World:
        def network(facts: Any) -> nn.Module:
            first, last = nn.Linear(facts.shape[0], 12), nn.Linear(12, classes or facts.classes)
            return nn.Sequential(first, *(layer() for layer in layers), last)

        own_models.LAYERS["tested"] = network
        config = tiny("engine=auto", *words)
        return world_of({**config, "model": {"_target_": "own_models.Layered", "layers": "tested"}})

    yield make
    own_models.LAYERS.clear()


class Function(nn.Module):
    """A layer without entries that a function is."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self, x)


@pytest.mark.parametrize(("engine", "workers"), [("loop", 3), ("stacked", 1)])
def test_two_runs_are_equal_resumed_and_verified(tiny: Tiny, engine: str, workers: int, tmp_path: Path):
    words = (f"engine={engine}", f"engine.workers={workers}", "rounds=3", *UNEQUAL)
    config = own(tiny(*words))

    def interrupt(row: dict[str, Any]) -> None:
        if row["round"] == 2:
            raise KeyboardInterrupt

    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    complete(config, tmp_path / "whole")
    torch.rand(3)  # nobody looks at the generator of the process
    with pytest.raises(KeyboardInterrupt):
        complete(config, tmp_path / "cut", interrupt)
    complete(config, tmp_path / "cut")
    assert kept_bytes(tmp_path / "cut") == kept_bytes(tmp_path / "whole")
    assert (tmp_path / "cut" / "digests.csv").read_bytes() == (tmp_path / "whole" / "digests.csv").read_bytes()
    lines = (tmp_path / "whole" / "digests.csv").read_text().split()[1:]
    stage = rerun.build_rerun(config, {"name": engine, "reason": ""})
    recomputed = [[str(each.round), each.digest] for each in stage.recompute_rounds(None, 3)]
    assert recomputed == [line.split(",")[:2] for line in lines]


def test_one_worker_equals_three(tiny: Tiny, tmp_path: Path):
    for workers in (1, 3):
        (tmp_path / str(workers)).mkdir()
        complete(own(tiny(f"engine.workers={workers}", *UNEQUAL)), tmp_path / str(workers))
    one, three = ((tmp_path / name / "digests.csv").read_bytes() for name in ("1", "3"))
    assert one == three


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("words", [(), UNEQUAL])
def test_masks_are_the_same_however_clients_are_grouped(tiny: Tiny, words: tuple[str, ...]):
    loop, stacked = (world_of(own(tiny(*words, f"engine={engine}"))) for engine in ENGINES)
    task, rows = first_round(loop), np.arange(6)
    alone = loop.trainer.run(task, rows)
    torch.testing.assert_close(stacked.trainer.run(task, rows), alone, atol=1e-9, rtol=0)
    some = np.array([4, 1, 2])
    torch.testing.assert_close(stacked.trainer.run(task, some), alone[torch.from_numpy(some)], atol=1e-9, rtol=0)
    assert not torch.equal(loop.trainer.run(first_round(loop), rows)[0], alone[1])


DRAWING = {
    "dropout": lambda: nn.Dropout(0.4),
    "dropout1d": lambda: nn.Sequential(nn.Unflatten(1, (4, 3)), nn.Dropout1d(0.4), nn.Flatten()),
    "alpha": lambda: nn.AlphaDropout(0.4),
    "feature_alpha": lambda: nn.Sequential(nn.Unflatten(1, (4, 3, 1)), nn.FeatureAlphaDropout(0.4), nn.Flatten()),
    "noise": lambda: Function(lambda self, x: x + torch.randn_like(x) if self.training else x),
    "rand": lambda: Function(lambda self, x: x * torch.rand(12) if self.training else x),
    "bernoulli": lambda: Function(lambda self, x: x * torch.bernoulli(x.sigmoid()) if self.training else x),
    "lstm": lambda: Function(Sequence()),
}


class Sequence(nn.Module):
    """An LSTM over three steps of four features, with dropout between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 12, num_layers=2, dropout=0.4)

    def forward(self, _: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x.reshape(-1, 3, 4).transpose(0, 1))[0][-1]


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("layer", DRAWING)
def test_every_random_layer_is_seeded_alike_in_both_engines(made: Callable[..., World], layer: str):
    loop, stacked = (made(DRAWING[layer], words=(*UNEQUAL, f"engine={engine}")) for engine in ENGINES)
    task = first_round(loop)
    alone = loop.trainer.run(task, np.arange(6))
    assert torch.equal(loop.trainer.run(task, np.array([3]))[0], alone[3])
    torch.testing.assert_close(stacked.trainer.run(task, np.arange(6)), alone, atol=1e-9, rtol=0)


def test_a_draw_that_only_the_loop_can_seed_is_seeded_there_and_refused_by_name_in_the_stack(
    made: Callable[..., World],
):
    world = made(nn.RReLU)
    assert world.choice.name == "loop"
    task = first_round(world)
    alone = world.trainer.run(task, np.arange(3))
    assert torch.equal(world.trainer.run(task, np.array([2]))[0], alone[2])
    with pytest.raises(
        ConfigError, match=r"engine=stacked cannot train this model: it draws other .*; use engine=loop"
    ):
        made(nn.RReLU, words=("engine=stacked",))


@pytest.mark.parametrize("layer", [nn.Dropout, nn.Identity])
def test_the_network_leaves_the_generator_of_the_process_alone(made: Callable[..., World], layer: type[nn.Module]):
    before = torch.get_rng_state()
    world = made(layer)
    world.trainer.run(first_round(world), np.arange(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_first_values_of_ones_own_are_kept_and_follow_from_the_seed(tiny: Tiny):
    worlds = [world_of(own(tiny(f"seed={seed}"))) for seed in (0, 0, 1)]
    same, again, other = (world.layout.views(world.first.flat) for world in worlds)
    for name, entry in same.items():
        assert torch.equal(entry, again[name])
    assert not same["head.weight"].any()
    for name in ("words.weight", "shift", "attention.in_proj_weight", "middle.0.weight"):
        assert entry_moves(same[name], other[name])
    assert same["words.weight"].std() > 0.7  # normal, as PyTorch draws an embedding


def entry_moves(one: torch.Tensor, other: torch.Tensor) -> bool:
    return not torch.equal(one, other)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (lambda: nn.BatchNorm1d(12), "BatchNorm1d moves its buffer 1.running_mean"),
        (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(12, 12)), "moves its buffer"),
    ],
)
def test_moving_statistics_train_in_the_loop_and_are_refused_in_the_stack(
    made: Callable[..., World], layer: Callable[[], nn.Module], told: str
):
    many = ("scenario.clients=32", "scenario.participants=32")
    world = made(layer, words=many)
    assert world.choice.name == "loop"
    assert told in world.choice.reason
    with pytest.raises(ConfigError, match=f"{told}.* use engine=loop"):
        made(layer, words=("engine=stacked",))


def test_an_engine_is_not_advised_that_cannot_train_the_model_either(made: Callable[..., World]):
    """Gradients of single examples are taken inside vmap, in every engine: no number leaves it."""
    private = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")

    def by_largest(_: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([example * float(example.detach().max()) for example in x])

    layers = (lambda: nn.LayerNorm(12), lambda: Function(by_largest))
    with pytest.raises(ConfigError, match=r"^engine=stacked cannot train this model: .*; nor can engine=loop: Runtime"):
        made(*layers, words=("engine=stacked", *private))


def test_batch_normalisation_of_pytorch_trains_as_ours(tiny: Tiny):
    def network(kind: Callable[[int], nn.Module]) -> Callable[[Any], nn.Module]:
        return lambda facts: nn.Sequential(
            nn.Conv2d(1, 4, 3), kind(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, facts.classes)
        )

    rows = []
    for kind in (nn.BatchNorm2d, BatchNorm):
        own_models.LAYERS["tested"] = network(kind)
        config = tiny("dataset.shape=[1,8,8]", "engine=loop")
        world = world_of({**config, "model": {"_target_": "own_models.Layered", "layers": "tested"}})
        rows.append(world.trainer.run(first_round(world), np.arange(4)))
    assert torch.equal(*rows)


def numpy_noise(_: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x + float(np.random.rand())  # noqa: NPY002 - the mistake


def frozen() -> nn.Module:
    layer = nn.Linear(12, 12)
    layer.weight.requires_grad = False
    return layer


class Counted(nn.Module):
    """Counts its calls in a whole number, that no model carries along."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.calls += 1
        return x


class Unused(nn.Identity):
    """An entry that is nowhere used."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.spare = nn.Parameter(torch.full((3,), value))


MISTAKES = {
    "parameter 1.weight is frozen": frozen,
    "forward must draw with torch, .* NumPy's global generator": lambda: Function(numpy_noise),
    "forward must draw with torch, .* Python's random": lambda: Function(lambda _, x: x * random.random()),
    "network must draw with torch, .* NumPy's": lambda: nn.Linear(12, int(np.random.rand()) + 12),  # noqa: NPY002
    "forward must not draw random numbers in evaluation": lambda: Function(lambda _, x: F.dropout(x)),
    "buffer 1.calls moves in training": Counted,
    "parameter 1.spare has no part": Unused,
    "1 must have a momentum": lambda: nn.BatchNorm1d(12, momentum=None),
    "must be torch.float32, got torch.float64": lambda: nn.Linear(12, 12, dtype=torch.float64),
    r"forward must take examples \[2, 8\], but raised RuntimeError: ": lambda: nn.Linear(5, 12),
    r"forward must return float logits \[2, 10\]": lambda: nn.Unflatten(1, (1, 12)),
    "must begin with finite numbers": lambda: Unused(float("nan")),
}


@pytest.mark.parametrize("told", MISTAKES)
def test_what_cannot_be_trained_is_refused_by_name(made: Callable[..., World], told: str):
    with pytest.raises(ConfigError, match=rf"^model=own_models.Layered: (\S+ )*{told}") as refused:
        made(MISTAKES[told])
    assert "\n" not in str(refused.value)


def test_a_network_is_a_module(tiny: Tiny):
    own_models.LAYERS["tested"] = lambda _: "a network"
    with pytest.raises(ConfigError, match=r"model=own_models.Layered: network must return a torch.nn.Module, got str"):
        world_of({**tiny(), "model": {"_target_": "own_models.Layered", "layers": "tested"}})


@pytest.mark.parametrize("classes", [3, 11])
def test_an_answer_for_each_class_and_no_more(made: Callable[..., World], classes: int):
    with pytest.raises(ConfigError, match=rf"must return float logits \[2, 10\] .* got torch.float32 \[2, {classes}\]"):
        made(classes=classes)


def test_a_state_names_the_engine_that_goes_on(tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    config = tiny("engine=auto", "checkpoint_s=0")

    def interrupt(_: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(config, tmp_path, interrupt)
    saved = checkpoint.load(tmp_path, config, torch.device("cpu")) or pytest.fail("no state")
    assert saved.engine["name"] == "loop"
    checkpoint.save(tmp_path, saved.state, config, {"name": "stacked", "reason": "measured"})
    complete(config, tmp_path)
    assert "engine stacked trained the rounds so far and goes on; today loop would be chosen" in caplog.text
    checkpoint.save(tmp_path, saved.state, config, {"name": "abacus", "reason": ""})
    (tmp_path / "summary.json").unlink()
    with pytest.raises(ConfigError, match="must name the engine loop or stacked, got 'abacus'"):
        complete(config, tmp_path)
