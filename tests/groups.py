"""Fifteen people in three groups, three of them the server's: twelve clients whose labels mean other things."""

from collections.abc import Callable
from typing import Any

import pytest

from fedexp.core import part as spec
from fedexp.core.values import State
from fedexp.simulation.build_world import build_world
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World
from fedexp.training.workers.pool import WorkerPool

GROUPED = (
    "dataset=synthetic",
    "dataset.subjects=15",
    "dataset.groups=3",
    "dataset.train_size=6000",
    "dataset.test_size=300",
    "federation=subject",
    "federation.server_persons=3",
    "scenario.participants=12",
)
SIMILAR = ("clustering=output_similarity", "clustering.threshold=1.4")
Lived = tuple[World, list[State], list[dict[str, Any]]]


@pytest.fixture
def live(tiny: Callable[..., dict[str, Any]]) -> Callable[..., Lived]:
    """A world on grouped data, and the states and rows of its rounds."""

    def lived(*words: str) -> Lived:
        world = build_world(spec.build(tiny(*GROUPED, *words)), None, WorkerPool())
        states, lines = [], []
        for state, row, _ in run_rounds(world.exp, world, world.initial_state()):
            states.append(state)
            lines.append(row)
        return world, states, lines

    return lived
