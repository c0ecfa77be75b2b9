"""client_accuracy.csv: every model that there is at the end, on what each client held out.

The ensembles are those of `clusters.vote`, `max`, `mean` and `nearest`, of all clusters that have members, here asked
for data of somebody inside. `personal` is the model that the client uses: its cluster's, with what it keeps to itself.
"""

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from fedexp.core.values import State, Weights
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.measures.clusters import answers, inhabited
from fedexp.simulation.measures.own_models import measured_clients, own_models
from fedexp.simulation.world import World

COLUMNS = ("client", "cluster", "examples", "global", "inside", "personal", "vote", "max", "mean", "nearest")


def measured(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """A line for each client that is measured; none without clusters or held-out examples."""
    if not (exp.clustering.divides and exp.evaluation.personal_fraction):
        return []
    memory = state.memory.get("clustering", {})
    models = [state.models[number] for number in inhabited(exp, world, state)]
    lines = []
    for client in measured_clients(exp, world).tolist():
        owner = np.array([client])
        number = int(exp.clustering.model_of(owner, memory)[0])
        own = Weights(own_models(exp, world, state, owner)[0], state.models[0].layout)
        right, examples = _right(world, client, [state.models[0], state.models[number], own], models)
        lines.append(dict(zip(COLUMNS, (client, number, examples, *right), strict=True)))
    return lines


def _right(world: World, client: int, single: list[Weights], together: list[Weights]) -> tuple[list[Any], int]:
    """The accuracies of single models and of an ensemble's four ways on what a client held out, and of how many."""
    index = world.train.to_device(world.held_out.shard(client))
    inputs, labels = world.train.inputs(index), world.train.y[index]
    asked = [F.log_softmax(world.scorer.logits(each, inputs), dim=1) for each in (*single, world.first, *together)]
    alone, (server, *clusters) = asked[: len(single)], asked[len(single) :]
    said = [logp.argmax(dim=1) for logp in alone]
    said += answers(torch.stack(clusters), server) if clusters else []
    right = [float((answer == labels).double().mean()) for answer in said]
    return right + [None] * (len(COLUMNS) - 3 - len(right)), len(index)
