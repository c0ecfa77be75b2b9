"""The models of a state on the server's data: the test data, or the validation data.

That is the global model. Where every client trains alone (`scenario.training=local`) there is none: each client's own
model is scored, and what is told are means over these clients, each of which counts alike. Malicious clients, and those
without examples, are left out; of more than `evaluation.personal_clients` a seeded sample is scored, the same in every
round.

Legend: n clients scored.
"""

from collections.abc import Callable

import numpy as np
import torch

from fedexp.core.values import State
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.scorer import DeferredScore, Scores
from fedexp.scoring.side_stream import PendingScore
from fedexp.simulation.measures.own_models import sample_clients, scoring_work
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.client.examples import Examples
from fedexp.training.workers.pool import Work


class MeanScore:
    """The mean of the scores of several models, which other workers may still compute."""

    def __init__(self, work: Work, finish: Callable[[Work], None], metric_set: MetricSet) -> None:
        """`work` gives a row (loss sum, examples, seconds, sums of the metrics) for each model."""
        self.work, self.finish, self.metric_set = work, finish, metric_set

    def result(self) -> Scores:
        """The mean scores, and the seconds of all models."""
        self.finish(self.work)
        rows = self.work.out.cpu().numpy()
        values = [self.metric_set.values(sums) for sums in rows[:, 3:]]
        metrics = {name: float(np.mean([value[name] for value in values])) for name in values[0]}
        return Scores(float((rows[:, 0] / rows[:, 1]).mean()), metrics, float(rows[:, 2].sum()))


def score_later(
    exp: Experiment, world: World, state: State, examples: Examples
) -> DeferredScore | PendingScore | MeanScore:
    """Starts scoring a state's models on `examples`; idle workers take the jobs, at the latest for the result."""
    if not exp.scenario.trains_alone:
        return world.score_later(state.models[0], examples)
    metric_set, index = world.scorer.metric_set, torch.arange(len(examples), device=world.first.flat.device)
    work = scoring_work(
        exp, world, state, alone_clients(exp, world), 3 + metric_set.width,
        lambda _, weights: world.scorer.sums(weights, examples, metric_set, index),
    )  # fmt: skip
    world.pool.defer(work)
    return MeanScore(work, world.pool.finish, metric_set)


def score(exp: Experiment, world: World, state: State, examples: Examples) -> Scores:
    """The scores of a state's models, now."""
    return score_later(exp, world, state, examples).result()


def alone_clients(exp: Experiment, world: World) -> np.ndarray:
    """The clients `[n]` whose own models are scored where each trains alone, ascending."""
    holders = np.setdiff1d(np.flatnonzero(world.partition.sizes), world.malicious)
    return sample_clients(exp, holders, "personal_clients")
