"""The clusters' models: ensembles of them on the test data, and each on its members' held-out examples.

`clusters.vote`, `max`, `mean` and `nearest` are accuracies on the test data, which belongs to no cluster, of all
clusters that have members; `nearest` asks the one whose answers are closest to those of the model before the first
round. With `evaluation.personal_fraction`, `clusters.inside` is the mean accuracy of the members' cluster models on
what the members held out, `clusters.global_inside` that of the global model; `personal_accuracy` is their own models'.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from fedexp.core.values import State, Weights
from fedexp.parts.clustering import predictions
from fedexp.process.device_clock import synchronized_time
from fedexp.simulation.measures.own_models import measured_clients, score_on_shard
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World

ENSEMBLE_COLUMNS = ("clusters.vote", "clusters.max", "clusters.mean", "clusters.nearest")
MEMBER_COLUMNS = ("clusters.inside", "clusters.global_inside")


def columns(exp: Experiment) -> tuple[str, ...]:
    """The names of the columns; none without clusters."""
    if not exp.clustering.has_clusters:
        return ()
    return ENSEMBLE_COLUMNS + (MEMBER_COLUMNS if exp.evaluation.personal else ())


def score_later(exp: Experiment, world: World, state: State) -> Callable[[], tuple[dict[str, Any], float]]:
    """Starts scoring the clusters' models; the result gives columns and seconds."""
    if not columns(exp):
        return lambda: ({}, 0.0)
    models = [state.models[number] for number in clusters_with_members(exp, world, state)]
    parts = world.scorer.parts(world.test) if models else []
    ensemble_work = world.defer_rows(
        [partial(_count_correct, world, models, part) for part in parts], len(ENSEMBLE_COLUMNS) + 1
    )
    owner = measured_clients(exp, world) if exp.evaluation.personal else np.zeros(0, dtype=np.int64)
    number = exp.clustering.model_of(owner, state.memory.get("clustering", {}))
    owner, number = owner[number > 0], number[number > 0]
    pairs = [(state.models[model], state.models[0]) for model in number]
    member_work = world.defer_rows(
        [partial(held_out_accuracies, world, client, pair) for client, pair in zip(owner.tolist(), pairs, strict=True)],
        len(MEMBER_COLUMNS) + 1,
    )

    def result() -> tuple[dict[str, Any], float]:
        cells, seconds = dict.fromkeys(columns(exp)), 0.0
        for work in (ensemble_work, member_work):
            world.pool.finish(work)
            seconds += float(work.out[:, -1].sum())
        if len(ensemble_work.out):
            accuracies = ensemble_work.out[:, :-1].sum(dim=0) / len(world.test)
            cells |= dict(zip(ENSEMBLE_COLUMNS, accuracies.tolist(), strict=True))
        if len(owner):
            cells |= dict(zip(MEMBER_COLUMNS, member_work.out[:, :-1].mean(dim=0).tolist(), strict=True))
        return cells, seconds

    return result


def clusters_with_members(exp: Experiment, world: World, state: State) -> np.ndarray:
    """The numbers `[m]` of the clusters that have members, ascending."""
    memory = state.memory.get("clustering", {})
    number = np.unique(exp.clustering.model_of(np.arange(world.partition.clients), memory))
    return number[number > 0]


def _count_correct(world: World, models: list[Weights], part: slice) -> torch.Tensor:
    """Correct answers of each kind of ensemble on a chunk of the test data, and seconds."""
    begin = synchronized_time(world.first.flat.device)
    inputs, labels = world.test.inputs(part), world.test.y[part]
    server, *logp = (F.log_softmax(world.scorer.logits(weights, inputs), dim=1) for weights in (world.first, *models))
    correct = torch.stack(
        [(answer == labels).sum().double() for answer in ensemble_predictions(torch.stack(logp), server)]
    )
    return torch.cat([correct, correct.new_tensor([synchronized_time(world.first.flat.device) - begin])]).clone()


def ensemble_predictions(clusters: torch.Tensor, server: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The classes `[B]` that each kind of ensemble predicts from log-probabilities `[M, B, K]`."""
    return (
        predictions.vote(clusters),
        predictions.highest(clusters),
        predictions.mean(clusters),
        predictions.nearest(clusters, server),
    )


def held_out_accuracies(world: World, client: int, models: tuple[Weights, ...]) -> torch.Tensor:
    """Accuracies of models on what a client held out, and the seconds that they took, `[models + 1]`."""
    shard, accuracy = world.held_out.shard(client), world.scorer.metric_set.accuracy
    scores = torch.stack([score_on_shard(world, weights, shard, accuracy) for weights in models])
    return torch.cat([scores[:, 0], scores[:, 1].sum()[None]])
