"""Builds the world of a run in four steps: load data, split and poison it, prepare inputs, choose a trainer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn

from fedexp.core.values import Canaries, Layout, Weights
from fedexp.parts.dataset import believed
from fedexp.parts.dataset.contract import Data, Facts
from fedexp.parts.federation.partition import Partition
from fedexp.scoring.gauge import Gauge
from fedexp.scoring.mixtures import MixtureScorer
from fedexp.scoring.scorer import Scorer
from fedexp.simulation.division import Division, divide
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.planting import draw_malicious, drawn_canaries, planted, poisoned, with_copies
from fedexp.simulation.preparation import Figures, encode, pretrain
from fedexp.simulation.world import World
from fedexp.training import networks
from fedexp.training.activations import activation_floats
from fedexp.training.engine import Choice
from fedexp.training.examples import Examples
from fedexp.training.made import Made
from fedexp.training.recipe import Recipe
from fedexp.training.workers import Crew

Network = Callable[[], nn.Module]


@dataclass(frozen=True)
class SharedOut:
    """The data after poisoning and planting of canaries, and which client holds which training example."""

    data: Data
    division: Division
    partition: Partition  # canaries included
    malicious: np.ndarray  # ascending
    canaries: Canaries


@dataclass(frozen=True)
class Prepared:
    """The examples on the device, and the model that the first round begins with."""

    train: Examples
    test: Examples
    validation: Examples | None
    public: Examples | None
    probes: dict[str, Examples]
    first: Weights
    gauge: Gauge
    figures: dict[str, Figures]


def build_world(exp: Experiment, choice: Choice | None, crew: Crew) -> World:
    """Builds what does not change during a run; `choice` is the trainer that earlier rounds of it used, if any.

    Raises:
        ConfigError: data, parts and machine cannot work together as asked.
        RunError: the first model is not finite.
    """
    torch.set_num_threads(1)
    data, told = loaded(exp)
    seen = exp.features.facts(told)
    network = partial(networks.built, exp.model, seen, exp.seed, exp.engine.enter(), exp.engine.precision)
    shared = shared_out(exp, data)
    rate = exp.selector.rate(shared.partition.clients)
    exp = replace(exp, privacy=exp.privacy.settle(shared.partition.sizes, exp.local, rate))
    ready = prepared(exp, shared, network, seen, crew)
    return staffed(exp, data.sha256(), shared, ready, network, choice, crew)


def loaded(exp: Experiment) -> tuple[Data, Facts]:
    """Loads the dataset; also returns the facts that it declared before, which must agree with it."""
    data, told = exp.dataset.load(exp.data_dir, exp.seed), believed.told(exp.dataset, exp.data_dir)
    believed.refuse(exp.dataset, told, data)
    return data, told


def shared_out(exp: Experiment, data: Data) -> SharedOut:
    """Splits the training examples over the clients, then poisons them and plants the audit's canaries."""
    division, data = divide(exp, data)
    if exp.scenario.copies:
        data, division, malicious = with_copies(exp, data, division)
    else:
        malicious = draw_malicious(exp, division.partition.clients)
    data = poisoned(exp, data, division.partition, malicious)
    canaries = drawn_canaries(exp, data, division.partition, malicious)
    data, partition = planted(data, division.partition, canaries)
    return SharedOut(data, division, partition, malicious, canaries)


def prepared(exp: Experiment, shared: SharedOut, network: Network, seen: Facts, crew: Crew) -> Prepared:
    """Learns features, moves the examples to the device and pretrains the first model."""
    device, untrained = exp.engine.place(), network()
    data, probes, learnt = encode(exp, shared.data, shared.division.public, crew)

    train = Examples(data.train, data, device, exp.augment)
    networks.refuse(exp.model, network, train, seen.outputs, exp.loss)
    validation, public = (_some(train, own) for own in (shared.division.validation, shared.division.public))
    layout, gauge = Layout.of(untrained), Gauge(exp.metrics, data.class_names)
    first, taught = pretrain(exp, network, Weights(layout.flatten(untrained).clone(), layout), public, gauge, crew)
    return Prepared(
        train=train,
        test=Examples(data.test, data, device),
        validation=validation and validation.normalised(),
        public=public,
        probes={name: Examples(split, data, device) for name, split in probes.items()},
        first=first,
        gauge=gauge,
        figures={"features": learnt, "pretraining": taught},
    )


def staffed(  # noqa: PLR0913
    exp: Experiment,
    data_sha256: str,
    shared: SharedOut,
    ready: Prepared,
    network: Network,
    choice: Choice | None,
    crew: Crew,
) -> World:
    """Chooses the trainer, makes the scorers, and puts the world together."""
    layout, device, some = ready.first.layout, exp.engine.place(), exp.scenario.participants
    made = Made(network, layout, ready.train, recipe(exp, shared.data), exp.engine.memory_mb)
    chosen = crew.agree(exp.engine.choose(made, min(some, shared.partition.clients)))
    choice, floats = chosen.after(choice), activation_floats(network(), ready.test)
    return World(
        exp=exp,
        first=ready.first,
        partition=shared.partition,
        held_out=shared.division.held_out,
        unseen=shared.division.unseen,
        malicious=shared.malicious,
        canaries=shared.canaries,
        train=ready.train,
        validation=ready.validation,
        public=ready.public,
        test=ready.test,
        probes=ready.probes,
        labels=shared.data.train.labels,
        data_sha256=data_sha256,
        groups=known_groups(shared.data, shared.partition),
        class_names=shared.data.class_names,
        prepared=ready.figures,
        choice=choice,
        network=network,
        trainer=choice.trainer(made),
        scorer=Scorer(network(), layout, exp.engine.chunk(floats), device, exp.loss, ready.gauge),
        mixtures=MixtureScorer(network(), layout, floats, device, exp.loss),
        crew=crew,
    )


def recipe(exp: Experiment, data: Data) -> Recipe:
    """The loss, local rule and privacy mechanism that every client trains with."""
    return Recipe(exp.loss, exp.local, exp.privacy, len(data.class_names))


def known_groups(data: Data, partition: Partition) -> np.ndarray | None:
    """The group `[N]` of each client's first example; None where the data has none, -1 for a client without data."""
    if data.groups is None:
        return None
    shards = (partition.shard(client) for client in range(partition.clients))
    return np.array([data.groups[shard[0]] if len(shard) else -1 for shard in shards], dtype=np.int64)


def _some(train: Examples, index: np.ndarray) -> Examples | None:
    return train.subset(index) if len(index) else None
