"""Runs of every selector: the same numbers with two workers, and after a stop in the middle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import world_of

from fedexp.config.location import conf_dir
from fedexp.core.values import State
from fedexp.run.state import checkpoint
from fedexp.run.tables import TIMINGS
from fedexp.simulation.round import Row
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.world import World

SELECTORS = sorted(path.stem for path in (conf_dir() / "selector").glob("*.yaml"))
LEARNING = ("afl", "dyn_hybridfl", "greedyfed", "oort", "s_fedavg", "ucb")
Tiny = Callable[..., dict[str, Any]]
Lines = list[tuple[str, list[int], torch.Tensor]]


@pytest.fixture
def config(tiny: Tiny) -> Callable[..., dict[str, Any]]:
    """The config of six rounds with a selector, on a fleet."""
    return lambda selector, *more: tiny(f"selector={selector}", "fleet=simulated", "rounds=6", *more)


def live(world: World, state: State, upto: int = 6) -> tuple[Lines, State]:
    """What each round left: its metrics without timings, who sent, the model; and the state after `upto`."""
    lines: Lines = []
    with with_workers(world.exp, world, state) as crewed:
        for after, row, sent in run_rounds(world.exp, crewed, state):
            lines.append((untimed(row), sent.owner.tolist(), after.models[0].flat))
            if after.round == upto:
                return lines, after
    raise AssertionError(f"the run ended before round {upto}")


def untimed(row: Row) -> str:
    return repr({name: value for name, value in row.items() if name not in TIMINGS})


def same(one: Lines, other: Lines) -> None:
    assert [line[:2] for line in one] == [line[:2] for line in other]
    assert all(torch.equal(ours[2], theirs[2]) for ours, theirs in zip(one, other, strict=True))


@pytest.mark.law("selector", "two workers change nothing, to the byte")
@pytest.mark.parametrize("selector", SELECTORS)
def test_two_workers_change_nothing(config: Tiny, selector: str):
    alone, shared = (world_of(config(selector, f"engine.workers={count}")) for count in (1, 2))
    same(live(alone, alone.initial_state())[0], live(shared, shared.initial_state())[0])


@pytest.mark.parametrize("selector", LEARNING)
def test_a_stop_in_the_middle_changes_nothing(config: Tiny, selector: str, tmp_path: Path):
    """The state of round 3 goes to disk and comes back: what a selector has learned is all in its memory."""
    plain = config(selector)
    world = world_of(plain)
    whole, _ = live(world, world.initial_state())
    first, state = live(world, world.initial_state(), upto=3)
    checkpoint.save(tmp_path, state, plain, {"name": "loop", "reason": ""})
    saved = checkpoint.load(tmp_path, plain, torch.device("cpu"))
    assert saved is not None
    same(whole, first + live(world, saved.state)[0])
