"""The rounds one after another: when each is told, and what of it is kept."""

import cProfile
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from worlds import world_of

from fedexp.simulation import rounds as rounds_module
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]


class Watched:
    """Stands for `run_round`; remembers the rows of every round, and how many of them live as the next one begins."""

    def __init__(self) -> None:
        self.rows: list[weakref.ref[torch.Tensor]] = []
        self.alive: list[int] = []
        gc.freeze()  # what earlier tests have left is not looked through in every round

    def __call__(self, *given: Any) -> Any:
        gc.collect()
        self.alive.append(sum(each() is not None for each in self.rows))
        state, row, sent = run_round(*given)
        self.rows.append(weakref.ref(sent.delta))
        return state, row, sent


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Takes the place of `run_round`."""
    watched = Watched()
    monkeypatch.setattr(rounds_module, "run_round", watched)
    return watched


def test_a_round_is_told_before_the_next_one_begins(tiny: Tiny, watched: Watched):
    world = world_of(tiny("rounds=4"))
    for state, _, _ in run_rounds(world.exp, world, world.initial_state()):
        assert len(watched.rows) == state.round


def test_where_somebody_evaluates_beside_the_next_round_that_one_comes_first(
    tiny: Tiny, watched: Watched, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(World, "evaluates_later", True)
    world = world_of(tiny("rounds=4"))
    begun = [len(watched.rows) for _ in run_rounds(world.exp, world, world.initial_state())]
    assert begun == [2, 3, 4, 4]


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("words", [(), ("evaluation.local_models=true",), ("evaluation.every=3",)], ids=lambda it: it)
def test_no_rows_of_a_round_live_through_the_next(
    tiny: Tiny, watched: Watched, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], later: bool
):
    monkeypatch.setattr(World, "evaluates_later", later)
    world = world_of(tiny("rounds=4", *words))
    for _, _, sent in run_rounds(world.exp, world, world.initial_state()):
        assert sent.delta.shape == (3, 0)
        assert len(sent.owner) == len(sent.loss_after) == 3
    assert watched.alive == [0, 0, 0, 0]


class Elements(TorchDispatchMode):
    """Counts the elements of all tensors that are made inside; views and tensors changed in place are not made."""

    count = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: else PyTorch imports its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and func._schema.returns[0].alias_info is None:
            self.count += made.numel()
        return made


def work_of_a_round(config: dict[str, Any]) -> np.ndarray:
    """How many functions the second round calls, and how many elements its tensors have, `[2]`."""
    world, calls = world_of(config), cProfile.Profile()
    state, _, _ = run_round(world.exp, world, world.initial_state())
    with Elements() as elements, calls:
        run_round(world.exp, world, state)
    return np.array([sum(each.callcount for each in calls.getstats()), elements.count])


@pytest.mark.parametrize(
    "words",
    [
        ("engine=loop",),
        ("engine=stacked",),
        ("engine=stacked", "local=scaffold"),
        ("engine=stacked", "local=personal_layer", "fleet=simulated"),
        (
            "engine=stacked",
            "privacy=client_local",
            "privacy.clip=1",
            "privacy.noise_multiplier=1",
            "privacy.delta=1e-3",
        ),
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_the_work_of_a_round_grows_with_its_participants(tiny: Tiny, words: tuple[str, ...]):
    """From 10 to 20 clients as much is added for each as from 20 to 40; before, what is made once is made."""
    _, some, more, most = (
        work_of_a_round(
            tiny(f"scenario.clients={n}", f"scenario.participants={n}", f"dataset.train_size={4 * n}", *words)
        )
        for n in (10, 10, 20, 40)
    )
    np.testing.assert_allclose((most - more) / 20, (more - some) / 10, rtol=0.1)
