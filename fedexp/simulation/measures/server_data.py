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

from fedexp.core.values import State, Weights
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.scorer import DeferredScore, Scores
from fedexp.scoring.side_stream import PendingScore
from fedexp.simulation.measures.own_models import keep_scores, last_scores, sample_holders, scoring_work
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.client.examples import Examples
from fedexp.training.workers.pool import Work

TEST = "test"


class MeanScore:
    """The mean of the scores of several models, which other workers may still compute."""

    def __init__(self, work: Work, finish: Callable[[Work], None], metric_set: MetricSet) -> None:
        """`work` gives a row (loss, seconds, every metric) for each model."""
        self.work, self.finish, self.metric_set = work, finish, metric_set

    def result(self) -> Scores:
        """The mean scores, each over the models for which it is defined, and the seconds of all models."""
        self.finish(self.work)
        losses, seconds, *values = self.work.out.cpu().numpy().T
        metrics = {name: mean_defined(value) for name, value in zip(self.metric_set.value_names, values, strict=True)}
        return Scores(float(losses.mean()), metrics, float(seconds.sum()))


def mean_defined(values: np.ndarray) -> float:
    """The mean of `values [n]` that are not NaN; NaN if all are."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def score_later(
    exp: Experiment, world: World, state: State, examples: Examples
) -> DeferredScore | PendingScore | MeanScore:
    """Starts scoring a state's models on `examples`; idle workers take the jobs, at the latest for the result."""
    if not exp.scenario.trains_alone:
        return world.score_later(state.models[0], examples)
    work = server_data_work(exp, world, state, examples)
    world.pool.defer(work)

    def finish(work: Work) -> None:
        world.pool.finish(work)
        if examples is world.test:
            keep_scores(world, state, TEST, work)

    return MeanScore(work, finish, world.scorer.metric_set)


def server_data_work(exp: Experiment, world: World, state: State, examples: Examples) -> Work:
    """Jobs that score the models of clients which train alone on `examples`: loss, seconds and every metric."""

    def score_model(_: int, weights: Weights) -> torch.Tensor:
        return score_row(world, weights, examples)

    return scoring_work(exp, world, state, alone_clients(exp, world), score_width(world), score_model)


def score_width(world: World) -> int:
    """How many numbers `score_row` gives."""
    return 2 + len(world.scorer.metric_set.value_names)


def score_row(world: World, weights: Weights, examples: Examples, index: torch.Tensor | None = None) -> torch.Tensor:
    """A model's loss, seconds and every metric on examples, or on those of the numbers `index [n]`: `[2 + metrics]`."""
    scores = world.scorer.score(weights, examples, world.scorer.metric_set, index)
    row = [scores.loss, scores.seconds, *(scores.metrics[name] for name in world.scorer.metric_set.value_names)]
    return torch.tensor(row, dtype=torch.float64, device=weights.flat.device)


def last_test_scores(exp: Experiment, world: World, state: State) -> dict[int, float]:
    """The main metric of the last state's own models on the test data, by the clients that are scored there."""
    metric_set = world.scorer.metric_set
    scores = last_scores(world, state, TEST, lambda: server_data_work(exp, world, state, world.test))
    values = scores[:, 2 + metric_set.value_names.index(metric_set.main)]
    return dict(zip(alone_clients(exp, world).tolist(), values.tolist(), strict=True))


def score(exp: Experiment, world: World, state: State, examples: Examples) -> Scores:
    """The scores of a state's models, now."""
    return score_later(exp, world, state, examples).result()


def alone_clients(exp: Experiment, world: World) -> np.ndarray:
    """The clients `[n]` whose own models are scored where each trains alone, ascending."""
    return sample_holders(exp, world, world.partition)
