"""Personal models, each measured on its own client's held-out examples.

With `evaluation.personal_fraction` every client holds out that part of its examples (rounded down, at least one of
two). Evaluated rounds then have the mean over clients of the main metric, the means of its worst and best tenths, its
standard deviation and Jain's index; every client counts alike. A client that has no model of its own is measured with
the global one. Malicious clients, and those with nothing held out, are left out; of more than
`evaluation.personal_clients` a seeded sample is measured, the same in every round.

Legend: n clients measured, D entries of a row.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import torch

from fedexp.core.random_streams import stream
from fedexp.core.values import State, Weights
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.maths.spread import best_tenth, deviation, jain, worst_tenth
from fedexp.parts.federation.partition import Partition
from fedexp.scoring.metrics import MetricSet
from fedexp.simulation.measures.fine_tuning import tune_rows
from fedexp.simulation.personal_columns import restore_personal
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.workers.pool import Work

HELD_OUT = "held_out"
FLOATS = 2**24  # entries of the models that one job holds
ScoreModel = Callable[[int, Weights], torch.Tensor]  # of a client and its model


def columns(exp: Experiment) -> tuple[str, ...]:
    """The names of the columns; none unless they are asked for."""
    names = (exp.metrics[0], "worst_decile", "best_decile", "std", "jain")
    return tuple(f"personal_{name}" for name in names) if exp.evaluation.personal else ()


def score_later(exp: Experiment, world: World, state: State) -> Callable[[], tuple[dict[str, Any], float]]:
    """Starts scoring the clients' models in this state; idle workers take the jobs.

    The result gives their columns, and the seconds of computing that they took.
    """
    if not columns(exp):
        return lambda: ({}, 0.0)
    work = held_out_work(exp, world, state)
    world.pool.defer(work)

    def result() -> tuple[dict[str, Any], float]:
        world.pool.finish(work)
        values, seconds = keep_scores(world, state, HELD_OUT, work).T
        measured = values[~np.isnan(values)]
        if not len(measured):
            return dict.fromkeys(columns(exp)), float(seconds.sum())
        spread = over_clients(measured, higher_is_better(exp.metrics[0]))
        return dict(zip(columns(exp), spread, strict=True)), float(seconds.sum())

    return result


def held_out_work(exp: Experiment, world: World, state: State) -> Work:
    """Jobs that score the models of the measured clients on what each holds out: the main metric and seconds."""

    def score(site: int, weights: Weights) -> torch.Tensor:
        return score_on_shard(world, weights, world.held_out.shard(site))

    return scoring_work(exp, world, state, measured_clients(exp, world), 2, score)


def keep_scores(world: World, state: State, data: str, work: Work) -> np.ndarray:
    """The scores `[n, w]` of the state's models on some data, of work that is done; kept for the last tables."""
    scores = work.out.cpu().numpy()
    world.kept_scores[data] = ref(state), scores
    return scores


def last_scores(world: World, state: State, data: str, make_work: Callable[[], Work]) -> np.ndarray:
    """The scores `[n, w]` of the last state's models on some data: those of its evaluation, else computed here, alone.

    Behind the last round no other worker is there.
    """
    scored, scores = world.kept_scores.get(data, (lambda: None, np.empty(0)))
    if scored() is state:
        return scores
    work = make_work()
    world.pool.run_locally(work)
    return work.out.cpu().numpy()


def measured_clients(exp: Experiment, world: World) -> np.ndarray:
    """The clients `[n]` whose models are measured, ascending."""
    return sample_holders(exp, world, world.held_out)


def sample_holders(exp: Experiment, world: World, partition: Partition) -> np.ndarray:
    """The honest clients `[n]` with examples of a partition whose models are measured on them, ascending."""
    return sample_clients(exp, partition.holders(world.malicious), "personal_clients")


def sample_clients(exp: Experiment, candidates: np.ndarray, name: str) -> np.ndarray:
    """At most `evaluation.personal_clients` of the clients `candidates [n]`, drawn from the stream of this name."""
    limit = exp.evaluation.personal_clients
    if len(candidates) <= limit:
        return candidates
    return np.sort(stream(exp.seed, name).choice(candidates, limit, replace=False, shuffle=False))


def score_on_shard(
    world: World, weights: Weights, shard: np.ndarray, metric_set: MetricSet | None = None
) -> torch.Tensor:
    """A model's main metric on a client's examples `shard [n]`, and the seconds that it took, `[2]`."""
    metric_set = metric_set or world.scorer.metric_set
    data, device = world.client_eval_data, world.first.flat.device
    scores = world.scorer.score(weights, data, metric_set, data.to_device(shard))
    return torch.tensor([scores.metrics[metric_set.main], scores.seconds], dtype=torch.float64, device=device)


def scoring_work(exp: Experiment, world: World, state: State, owner: np.ndarray, width: int, score: ScoreModel) -> Work:
    """Jobs for some of the clients `owner [n]` at a time: of each the `width` numbers that `score` gives its model."""
    work = Work(torch.zeros((len(owner), width), dtype=torch.float64, device=world.first.flat.device))
    layout, group_size = state.models[0].layout, max(1, FLOATS // world.layout.size)

    def scores(positions: np.ndarray) -> torch.Tensor:
        rows = personal_models(exp, world, state, owner[positions])
        clients = owner[positions].tolist()
        return torch.stack([score(client, Weights(row, layout)) for client, row in zip(clients, rows, strict=True)])

    for start in range(0, len(owner), group_size):
        positions = np.arange(start, min(start + group_size, len(owner)))
        work.jobs.append((positions, lambda positions=positions: scores(positions)))
    return work


def personal_models(exp: Experiment, world: World, state: State, owner: np.ndarray) -> torch.Tensor:
    """The models that these sites use, `[n, D]`: what the rule serves, given their cluster's and what they keep.

    Each is tuned to its site's examples, if that is asked for.
    """
    site, owner = owner, world.trainer_of(owner)
    number = exp.clustering.model_of(owner, state.memory.get("clustering", {}))
    rows = state.models[0].flat.expand(len(owner), -1)
    if number.any():
        rows = torch.stack([state.models[index].flat for index in number])
    rows = exp.aggregator.client_models(owner, rows, state.memory.get("aggregator", {}).get("0", {}))
    rows = restore_personal(exp, world.layout, owner, rows, state.memory)
    companion = exp.local.companion
    rule, role = (exp.local, "local") if companion is None else (companion, "companion")
    rows = rule.client_models(owner, rows, state.memory.get(role, {}))
    return tune_rows(world, rows, site, state.round)


def over_clients(values: np.ndarray, higher: bool) -> tuple[float, ...]:
    """Mean, worst and best tenth, standard deviation and Jain's index of `values [n]`."""
    tenths = worst_tenth(values, higher), best_tenth(values, higher)
    return float(values.mean()), *tenths, deviation(values), jain(values)
