"""client_accuracy.csv: every final model on each client's held-out or own test examples.

Without clusters these are the global model and the client's own. Clients that never trained follow the others, with 1
in the column `unseen` and no model of their own. With clusters they are left out.

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
from fedexp.simulation.measures.own_models import measured_clients, own_models, scored
from fedexp.simulation.measures.participation import measured_unseen
from fedexp.simulation.world import World

COLUMNS = ("client", "cluster", "examples", "global", "inside", "personal", "vote", "max", "mean", "nearest")


def measured(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """A row for each measured client; none if no models are measured at the clients."""
    if not exp.evaluation.personal:
        return []
    return at_clusters(exp, world, state) if exp.clustering.divides else at_clients(exp, world, state)


def at_clients(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """The rows of a run without clusters."""
    lines, layout = [], state.models[0].layout
    for client in measured_clients(exp, world).tolist():
        (own,) = own_models(exp, world, state, np.array([client]))
        models = (state.models[0], Weights(own, layout))
        lines.append(_line(world, client, world.held_out.shard(client), models))
    if not exp.evaluation.unseen_fraction:
        return lines
    training = world.partition.clients
    apart = [
        _line(world, training + client, world.unseen.shard(client), (state.models[0],))
        for client in measured_unseen(exp, world).tolist()
    ]
    return [{**line, "unseen": 0} for line in lines] + [{**line, "unseen": 1} for line in apart]


def _line(world: World, client: int, held: np.ndarray, models: tuple[Weights, ...]) -> dict[str, Any]:
    right = [float(scored(world, each, held)[0]) for each in models]
    return {"client": client, "examples": len(held), "global": right[0], "personal": right[1] if right[1:] else None}


def at_clusters(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """The rows of a run with clusters."""
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
    """Accuracies of single models and of four ensembles on a client's held-out examples, and their number."""
    index = world.home.to_device(world.held_out.shard(client))
    inputs, labels = world.home.inputs(index), world.home.y[index]
    asked = [F.log_softmax(world.scorer.logits(each, inputs), dim=1) for each in (*single, world.first, *together)]
    alone, (server, *clusters) = asked[: len(single)], asked[len(single) :]
    said = [logp.argmax(dim=1) for logp in alone]
    said += answers(torch.stack(clusters), server) if clusters else []
    right = [float((answer == labels).double().mean()) for answer in said]
    return right + [None] * (len(COLUMNS) - 3 - len(right)), len(index)
