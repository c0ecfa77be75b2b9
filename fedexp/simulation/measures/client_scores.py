"""client_scores.csv: every final model on each client's held-out or own test examples, by the metric in `metric`.

That is the run's main metric, with clusters the accuracy.

Without clusters these are the global model and the client's own. Clients that never trained follow the others, with 1
in the column `unseen` and no model of their own. With clusters they are left out.

Where every client trains alone, there is no global model, and a column `test` has the client's own on the test data,
empty where that is of a sample without the client.

Of two classes `positives` says how many of the examples are of the second one.

The ensembles are those of `clusters.vote`, `max`, `mean` and `nearest`, of all clusters that have members, here asked
for data of somebody inside. `personal` is the model that the client uses: its cluster's, with what it keeps to itself.
"""

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from fedexp.core.values import State, Weights
from fedexp.simulation.measures.clusters import clusters_with_members, ensemble_predictions
from fedexp.simulation.measures.own_models import (
    HELD_OUT,
    held_out_work,
    last_scores,
    measured_clients,
    personal_models,
    score_on_shard,
)
from fedexp.simulation.measures.participation import measured_unseen
from fedexp.simulation.measures.server_data import last_test_scores
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World, with_client_name

COLUMNS = ("client", "metric", "cluster", "examples", "global", "inside", "personal", "vote", "max", "mean", "nearest")


def score_rows(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """A row for each measured client; none if no models are measured at the clients, or no test data at all."""
    if not (exp.evaluation.personal and exp.evaluation.test):
        return []
    rows = rows_with_clusters if exp.clustering.has_clusters else rows_without_clusters
    return [with_client_name(line, world.site_names) for line in rows(exp, world, state)]


def rows_without_clusters(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """The rows of a run without clusters."""
    scores = last_scores(world, state, HELD_OUT, lambda: held_out_work(exp, world, state))[:, 0].tolist()
    shared = None if exp.scenario.trains_alone else state.models[0]
    lines = [
        _client_row(world, client, world.held_out.shard(client), shared, score)
        for client, score in zip(measured_clients(exp, world).tolist(), scores, strict=True)
    ]
    if exp.scenario.trains_alone:
        scored = last_test_scores(exp, world, state)
        lines = [{**line, "test": scored.get(line["client"])} for line in lines]
    if not exp.evaluation.unseen_fraction:
        return lines
    training = world.sites.clients
    unseen_lines = [
        _client_row(world, training + client, world.unseen.shard(client), state.models[0])
        for client in measured_unseen(exp, world).tolist()
    ]
    return [{**line, "unseen": 0} for line in lines] + [{**line, "unseen": 1} for line in unseen_lines]


def _client_row(
    world: World, client: int, shard: np.ndarray, shared: Weights | None, personal: float | None = None
) -> dict[str, Any]:
    score = None if shared is None else float(score_on_shard(world, shared, shard)[0])
    line = {"client": client, "metric": world.exp.metrics[0], **_counts(world, shard)}
    return line | {"global": score, "personal": personal}


def _counts(world: World, shard: np.ndarray) -> dict[str, int]:
    """How many examples there are, and of two classes how many of the second one."""
    data, counts = world.client_eval_data, {"examples": len(shard)}
    if len(world.class_names) == 2 and data.y.dim() == 1:
        counts["positives"] = int(data.y[data.to_device(shard)].sum())
    return counts


def rows_with_clusters(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """The rows of a run with clusters."""
    memory = state.memory.get("clustering", {})
    models = [state.models[number] for number in clusters_with_members(exp, world, state)]
    lines = []
    for client in measured_clients(exp, world).tolist():
        owner = np.array([client])
        number = int(exp.clustering.model_of(owner, memory)[0])
        personal_model = Weights(personal_models(exp, world, state, owner)[0], state.models[0].layout)
        accuracies = _accuracies(world, client, [state.models[0], state.models[number], personal_model], models)
        counts = _counts(world, world.held_out.shard(client))
        cells = (client, "accuracy", number, counts["examples"], *accuracies)
        lines.append(dict(zip(COLUMNS, cells, strict=True)) | counts)
    return lines


def _accuracies(world: World, client: int, single: list[Weights], ensemble: list[Weights]) -> list[Any]:
    """Accuracies of single models and of four ensembles on a client's held-out examples."""
    index = world.client_eval_data.to_device(world.held_out.shard(client))
    inputs, labels = world.client_eval_data.inputs(index), world.client_eval_data.y[index]
    log_probs = [
        F.log_softmax(world.scorer.logits(weights, inputs), dim=1) for weights in (*single, world.first, *ensemble)
    ]
    alone, (server, *clusters) = log_probs[: len(single)], log_probs[len(single) :]
    predictions = [logp.argmax(dim=1) for logp in alone]
    predictions += ensemble_predictions(torch.stack(clusters), server) if clusters else []
    accuracies = [float((answer == labels).double().mean()) for answer in predictions]
    return accuracies + [None] * (len(COLUMNS) - 4 - len(accuracies))
