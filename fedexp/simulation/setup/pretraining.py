"""What the server does before the first round: it learns features and pretrains the first model.

Every process of a run does both; what the first one came to is what all of them use.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from fedexp.core.errors import ConfigError, RunError
from fedexp.core.part import describe_choice
from fedexp.core.random_streams import stream
from fedexp.core.values import SERVER, Plan, Weights
from fedexp.parts.dataset.contract import Data, Split
from fedexp.parts.features.contract import Encoding
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.privacy.contract import Privacy
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.scorer import Scorer
from fedexp.simulation.setup.experiment import Experiment
from fedexp.training.client.batches import draw_batches
from fedexp.training.client.examples import Examples
from fedexp.training.client.recipe import Recipe
from fedexp.training.loop.trainer import LoopTrainer, Task
from fedexp.training.workers.pool import PRETRAINING, Work, WorkerPool

Figures = dict[str, float]  # what is worth telling of a preparation, by name; empty where nothing was prepared


def encode(
    exp: Experiment, data: Data, public: np.ndarray, pool: WorkerPool
) -> tuple[Data, dict[str, Split], Encoding]:
    """Learns features from the public examples `public [m]`; returns the encoded data and attack probes, and how."""
    rng, probes = partial(stream, exp.seed, "features"), exp.attack.probes(data)
    examples = data.train.x[torch.from_numpy(public)]
    encoding: Encoding = pool.broadcast(exp.features.learn(examples, rng, exp.engine.resolve_device()))
    probe_splits = {name: encoding.split(split, rng(name)) for name, split in probes.items()}
    return encoding.data(data, rng), probe_splits, encoding


def pretrain(
    exp: Experiment,
    network: Callable[[], nn.Module],
    first: Weights,
    public: Examples | None,
    class_names: tuple[str, ...],
    pool: WorkerPool,
) -> tuple[Weights, Figures]:
    """Trains the initial model on public data, if the config asks for it.

    Raises:
        ConfigError: it is to be trained on public data that there is not.
        RunError: it is not finite.
    """

    def train(rule: LocalRule) -> Weights:
        if public is None:
            raise ConfigError(
                f"{describe_choice('pretraining', exp.pretraining)}: prepare must train on public data only if it asks "
                "for them; set needs_public = True in the class"
            )
        return train_alone(network(), first, public, Recipe(exp.loss, rule, Privacy(), 0), exp.seed, pool)

    begin = time.perf_counter()
    trained = exp.pretraining.prepare(first, train)
    if trained is first:
        return first, {}
    trained = Weights(pool.broadcast(trained.flat.cpu()).to(first.flat.device), first.layout)
    if not trained.flat.isfinite().all():
        raise RunError("the model is not finite after pretraining; lower pretraining.lr")
    if public is None:
        return trained, {"seconds": time.perf_counter() - begin}
    metric_set = MetricSet(exp.metric_entries, class_names)
    scorer = Scorer(network(), first.layout, 500, first.flat.device, exp.loss, metric_set)
    scores = scorer.score(trained, public, metric_set)
    main = metric_set.main
    return trained, {f"public_{main}": scores.metrics[main], "seconds": time.perf_counter() - begin}


def train_alone(
    network: nn.Module, first: Weights, examples: Examples, recipe: Recipe, seed: int, pool: WorkerPool
) -> Weights:
    """Trains one model on all of these examples, independent of the clients' engine."""
    plan = Plan(np.array([SERVER]), (np.arange(len(examples)),))
    drawn = recipe.rule.with_drawn_epochs(SERVER, partial(stream, seed))
    batches = draw_batches(drawn, len(examples), stream(seed, "pretraining"))
    start = first.flat[None]
    task = Task(start, start[:, : first.layout.parameters], plan, (batches,), seed, 0, watch=pool.watch)
    loop, row = LoopTrainer(network, first.layout, examples, recipe), np.zeros(1, np.int64)
    width = first.layout.size + first.layout.parameters * recipe.rule.finish_needs_slot + 2
    work = Work(start.new_zeros((1, width)), [(row, lambda: loop.run(task, row))], PRETRAINING)
    pool.run_locally(work)
    return Weights(work.out[0, : first.layout.size].clone(), first.layout)
