"""Builds the world of a run in four steps: load data, split and poison it, prepare inputs, choose a trainer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.part import build, option
from fedexp.core.values import Canaries, Layout, Weights
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.contract import Data, Facts
from fedexp.parts.federation.partition import Partition
from fedexp.parts.network_errors import refuse_network_errors
from fedexp.parts.privacy.ledger import Ledger
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.mixtures import MixtureScorer
from fedexp.scoring.scorer import Scorer
from fedexp.simulation import context
from fedexp.simulation.setup import compatibility
from fedexp.simulation.setup.data_split import DataSplit, refuse_no_validation, split_data
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.malicious import draw_malicious, give_copies
from fedexp.simulation.setup.poison_and_canaries import draw_canaries, plant_canaries, poison_data
from fedexp.simulation.setup.pretraining import encode, pretrain
from fedexp.simulation.world import PreparedRun, World
from fedexp.training.client import networks
from fedexp.training.client.activation_memory import activation_floats
from fedexp.training.client.batches import smallest_batch
from fedexp.training.client.examples import Examples
from fedexp.training.client.recipe import Recipe, TrainerSpec
from fedexp.training.engine.contract import EngineChoice
from fedexp.training.per_example.independence import refuse_dependence
from fedexp.training.workers.pool import WorkerPool

NetworkFactory = Callable[[], nn.Module]


@dataclass(frozen=True)
class PoisonedSplit:
    """The data after poisoning and planting of canaries, and which client holds which training example."""

    data: Data
    split: DataSplit
    partition: Partition  # what each client of the rounds trains on: one trains on all where the data is pooled
    malicious: np.ndarray  # ascending
    canaries: Canaries


def build_experiment(config: Mapping[str, Any]) -> Experiment:
    """Builds the experiment of a plain config.

    Raises:
        ConfigError: a value is wrong, or parts cannot work together, as far as can be known before data is loaded.
    """
    exp: Experiment = build(config)
    compatibility.refuse(exp)
    return exp


def build_world(exp: Experiment, choice: EngineChoice | None, pool: WorkerPool) -> World:
    """Builds what does not change during a run; `choice` is the trainer that earlier rounds of it used, if any.

    Raises:
        ConfigError: data, parts and machine cannot work together as asked.
        RunError: the first model is not finite.
    """
    torch.set_num_threads(1)
    data, facts = load(exp)
    input_facts = exp.features.facts(facts)
    network = partial(
        networks.build_network, exp.model, input_facts, exp.seed, exp.engine.activate_device(), exp.engine.precision
    )
    poisoned_split = split_and_poison(exp, data)
    partition = poisoned_split.partition
    compatibility.refuse_rows(exp, partition.clients)
    is_sample = not (exp.pacing.prefers_fast or exp.availability.changes)  # else who arrives is no random sample
    rate = exp.selector.rate(partition.clients) if is_sample else 1.0
    exp = replace(exp, privacy=exp.privacy.calibrate_noise(partition.sizes, exp.local, rate))
    ready = prepare(exp, poisoned_split, network, input_facts, pool)
    if smallest_batch(exp.local, partition.sizes, exp.privacy.sampling) == 1:
        networks.refuse_single_examples(exp.model, network, ready.train)
    if exp.privacy.example_clip is not None:
        refuse_dependence(exp.model, network, ready.train)
    world = assemble_world(exp, data.sha256(), poisoned_split, ready, network, choice, pool)
    refuse_first_round(world)
    return world


def load(exp: Experiment) -> tuple[Data, Facts]:
    """Loads the dataset; also returns the facts that it declared before, which must agree with it."""
    data, facts = exp.dataset.load(exp.data_dir, exp.seed), check_data.checked_facts(exp.dataset, exp.data_dir)
    check_data.refuse(exp.dataset, facts, data)
    return data, facts


def split_and_poison(exp: Experiment, data: Data) -> PoisonedSplit:
    """Splits the training examples over the clients, then poisons them and plants the audit's canaries."""
    split, data = split_data(exp, data)
    if exp.scenario.copies:
        data, split, malicious = give_copies(exp, data, split)
    else:
        malicious = draw_malicious(exp, split.partition.clients)
    refuse_no_validation(exp, split.client_validation, malicious)
    data = poison_data(exp, data, split.partition, malicious)
    canaries = draw_canaries(exp, data, split.partition, malicious)
    data, sites = plant_canaries(data, split.partition, canaries)
    partition = sites.pool() if exp.scenario.pools_data else sites
    return PoisonedSplit(data, replace(split, partition=sites), partition, malicious, canaries)


def prepare(
    exp: Experiment, poisoned_split: PoisonedSplit, network: NetworkFactory, input_facts: Facts, pool: WorkerPool
) -> PreparedRun:
    """Learns features, moves the examples to the device and pretrains the first model."""
    device, untrained = exp.engine.resolve_device(), network()
    split = poisoned_split.split
    data, probes, encoding = encode(exp, poisoned_split.data, split.public, pool)

    train = Examples(data.train, data, device, exp.augment)
    networks.refuse_untrainable(exp.model, network, train, input_facts.outputs, exp.loss)
    validation, public = (train.subset(index) if len(index) else None for index in (split.validation, split.public))
    layout = Layout.of(untrained)
    first, pretraining_figures = pretrain(
        exp, network, Weights(layout.flatten(untrained).clone(), layout), public, data.class_names, pool
    )
    return PreparedRun(
        train=train,
        test=Examples(data.test, data, device),
        validation=validation and validation.normalise(),
        public=public,
        public_index=split.public,
        client_validation=split.client_validation,
        judging=split.judging,
        probes={name: Examples(split, data, device) for name, split in probes.items()},
        encoding=encoding,
        first=first,
        data_doubts=data.doubts,
        preparation_figures={"features": dict(encoding.figures), "pretraining": pretraining_figures},
    )


def assemble_world(  # noqa: PLR0913
    exp: Experiment,
    data_sha256: str,
    poisoned_split: PoisonedSplit,
    ready: PreparedRun,
    network: NetworkFactory,
    choice: EngineChoice | None,
    pool: WorkerPool,
) -> World:
    """Chooses the trainer, makes the scorers, and puts the world together."""
    data, split, partition = poisoned_split.data, poisoned_split.split, poisoned_split.partition
    layout, device = ready.first.layout, exp.engine.resolve_device()
    metric_set = MetricSet(exp.metric_entries, data.class_names)
    clients_recipe = Recipe(exp.loss, exp.local, exp.privacy, len(data.class_names))
    participants = exp.usual_participants(partition.clients)
    spec = TrainerSpec(network, layout, ready.train, clients_recipe, exp.engine.stack_memory_mb(), participants)
    with refuse_network_errors(exp.model):
        floats, best = activation_floats(spec.build_network(), ready.test), exp.engine.choose(spec, participants)
    choice = pool.broadcast(best).keep_recorded(choice)
    return World(
        **vars(ready),
        exp=exp,
        partition=partition,
        sites=split.partition,
        held_out=split.held_out,
        unseen=split.unseen,
        site_names=split.names,
        malicious=poisoned_split.malicious,
        canaries=poisoned_split.canaries,
        labels=data.train.labels,
        data_sha256=data_sha256,
        groups=known_groups(data, partition),
        class_names=data.class_names,
        choice=choice,
        trainer_spec=spec,
        trainer=choice.make_trainer(spec),
        scorer=Scorer(network(), layout, exp.engine.evaluation_batch_size(floats), device, exp.loss, metric_set),
        mixture_scorer=MixtureScorer(network(), layout, floats, ready.test, exp.loss),
        pool=pool,
    )


def refuse_first_round(world: World) -> None:
    """Raises ConfigError where a single round may cost more than the stop rule allows: rules judge after a round."""
    exp = world.exp
    if not exp.stop.needs_privacy:
        return
    columns = exp.privacy.forecast(Ledger.load({}), 0, context.make_context(world, 1))
    if reason := exp.stop.judge({f"privacy.{name}": value for name, value in columns.items()}, {})[0]:
        raise ConfigError(
            f"stop={option(exp.stop)} leaves no round to run: {reason}; raise the budget or privacy.noise_multiplier"
        )


def known_groups(data: Data, partition: Partition) -> np.ndarray | None:
    """The group `[N]` of each client's first example; None where the data has none, -1 for a client without data."""
    if data.groups is None:
        return None
    shards = (partition.shard(client) for client in range(partition.clients))
    return np.array([data.groups[shard[0]] if len(shard) else -1 for shard in shards], dtype=np.int64)
