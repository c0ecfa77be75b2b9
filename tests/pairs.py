"""Companions of a first round, trained beside the models that are sent."""

import numpy as np
import torch
from worlds import first_round

from fedexp.core.device_arrays import as_matrix
from fedexp.core.values import Memory, State
from fedexp.simulation import context
from fedexp.simulation.local_task import make_task
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.world import World

CLIENTS = np.arange(6)


def own_models(world: World, state: State) -> torch.Tensor:
    return personal_models(world.exp, world, state, CLIENTS)


def train_pairs(world: World, memory: Memory | None = None) -> tuple[torch.Tensor, World]:
    """The rows `[private | shared]` that the companions of a first round end with, given theirs, and their world."""
    task = first_round(world)
    rule = world.exp.local.companion
    assert rule is not None
    beside = world.with_rule(rule)
    start = beside.exp.local.extend_rows(as_matrix(task.start), world.layout)
    pairs = make_task(beside.exp, start, task.plan, task.batches, memory or {}, context.make_context(beside, 1))
    out = torch.zeros(6, beside.layout.size, dtype=torch.float64)
    for rows in beside.trainer.groups(pairs, 1):
        out[rows] = beside.trainer.run(pairs, rows)[:, :-2].double()
    return out, beside
