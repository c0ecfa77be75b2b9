"""The clusters' models: ensembles of them on the test data, and each on its members' held-out examples.

`clusters.vote`, `max`, `mean` and `nearest` are accuracies on the test data, which belongs to no cluster, of all
clusters that have members; `nearest` asks the one whose answers are closest to those of the model before the first
round. With `evaluation.personal_fraction`, `clusters.inside` is the mean accuracy of the members' cluster models on
what the members held out, `clusters.global_inside` that of the global model; `personal_accuracy` is their own models'.
"""

from collections.abc import Callable
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
from fedexp.training.workers.pool import Work

ENSEMBLE_COLUMNS = ("clusters.vote", "clusters.max", "clusters.mean", "clusters.nearest")
MEMBER_COLUMNS = ("clusters.inside", "clusters.global_inside")


def blank(exp: Experiment) -> dict[str, Any]:
    """The cells of a round that is not evaluated."""
    if not exp.clustering.has_clusters:
        return {}
    return dict.fromkeys(ENSEMBLE_COLUMNS + (MEMBER_COLUMNS if exp.evaluation.personal else ()))


def score_later(exp: Experiment, world: World, state: State) -> Callable[[], tuple[dict[str, Any], float]]:
    """Starts scoring the clusters' models; the result gives columns and seconds."""
    if not exp.clustering.has_clusters:
        return lambda: ({}, 0.0)
    memory = state.memory.get("clustering", {})
    ensemble_work = score_ensembles(
        world, [state.models[number] for number in clusters_with_members(exp, world, state)]
    )
    owner = measured_clients(exp, world) if exp.evaluation.personal else np.zeros(0, dtype=np.int64)
    number = exp.clustering.model_of(owner, memory)
    owner, number = owner[number > 0], number[number > 0]
    member_work = score_members(world, state.models, owner, number)
    for work in (ensemble_work, member_work):
        world.pool.defer(work)

    def result() -> tuple[dict[str, Any], float]:
        columns, seconds = blank(exp), 0.0
        for work in (ensemble_work, member_work):
            world.pool.finish(work)
            seconds += float(work.out[:, -1].sum())
        if len(ensemble_work.out):
            accuracies = ensemble_work.out[:, :-1].sum(dim=0) / len(world.test)
            columns |= dict(zip(ENSEMBLE_COLUMNS, accuracies.tolist(), strict=True))
        if len(owner):
            columns |= dict(zip(MEMBER_COLUMNS, member_work.out[:, :-1].mean(dim=0).tolist(), strict=True))
        return columns, seconds

    return result


def clusters_with_members(exp: Experiment, world: World, state: State) -> np.ndarray:
    """The numbers `[m]` of the clusters that have members, ascending."""
    memory = state.memory.get("clustering", {})
    number = np.unique(exp.clustering.model_of(np.arange(world.partition.clients), memory))
    return number[number > 0]


def score_ensembles(world: World, models: list[Weights]) -> Work:
    """A job for each chunk of the test data: correct answers of each kind of ensemble, and seconds."""
    chunk = world.scorer.chunk
    starts = range(0, len(world.test) if models else 0, chunk)
    work = Work(
        torch.zeros((len(starts), len(ENSEMBLE_COLUMNS) + 1), dtype=torch.float64, device=world.first.flat.device)
    )
    for position, start in enumerate(starts):
        part = slice(start, start + chunk)
        work.jobs.append((np.array([position]), lambda part=part: _count_correct(world, models, part)))
    return work


def _count_correct(world: World, models: list[Weights], part: slice) -> torch.Tensor:
    begin = synchronized_time(world.first.flat.device)
    inputs, labels = world.test.inputs(part), world.test.y[part]
    server, *logp = (F.log_softmax(world.scorer.logits(weights, inputs), dim=1) for weights in (world.first, *models))
    correct = torch.stack(
        [(answer == labels).sum().double() for answer in ensemble_predictions(torch.stack(logp), server)]
    )
    return torch.cat([correct, correct.new_tensor([synchronized_time(world.first.flat.device) - begin])])[None].clone()


def ensemble_predictions(clusters: torch.Tensor, server: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The classes `[B]` that each kind of ensemble predicts from log-probabilities `[M, B, K]`."""
    return (
        predictions.vote(clusters),
        predictions.highest(clusters),
        predictions.mean(clusters),
        predictions.nearest(clusters, server),
    )


def score_members(world: World, models: tuple[Weights, ...], owner: np.ndarray, number: np.ndarray) -> Work:
    """A job for each client of `owner [n]`: accuracies of its cluster's model `number [n]` and the global one."""
    work = Work(torch.zeros((len(owner), len(MEMBER_COLUMNS) + 1), dtype=torch.float64, device=world.first.flat.device))
    for position, (client, model) in enumerate(zip(owner.tolist(), number.tolist(), strict=True)):
        pair = (models[model], models[0])
        work.jobs.append(
            (np.array([position]), lambda client=client, pair=pair: held_out_accuracies(world, client, pair))
        )
    return work


def held_out_accuracies(world: World, client: int, models: tuple[Weights, ...]) -> torch.Tensor:
    """Accuracies of models on what a client held out, and the seconds that they took, `[1, models + 1]`."""
    shard, accuracy = world.held_out.shard(client), world.scorer.metric_set.accuracy
    scores = torch.stack([score_on_shard(world, weights, shard, accuracy) for weights in models])
    return torch.cat([scores[:, 0], scores[:, 1].sum()[None]])[None]
