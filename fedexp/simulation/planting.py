"""What malicious clients and the audit put into the training data, before the first round."""

from dataclasses import replace

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.core.values import Canaries
from fedexp.parts.dataset.contract import Data, Split
from fedexp.parts.federation.owners import gather
from fedexp.parts.federation.partition import Partition
from fedexp.simulation.experiment import Experiment


def draw_malicious(exp: Experiment, clients: int) -> np.ndarray:
    """The malicious clients `[n]` of the run, ascending.

    Raises:
        ConfigError: there are fewer clients.
    """
    count = exp.scenario.malicious
    if count > clients:
        raise ConfigError(
            f"scenario.malicious must be at most the {clients} clients of this federation, got {count}; lower it"
        )
    return np.sort(stream(exp.seed, "malicious").permutation(clients)[:count])


def poisoned(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Data:
    """The data with the own examples of the clients `malicious [n]` changed by the attack."""
    owned = np.concatenate([np.zeros(0, np.int64), *(partition.shard(int(client)) for client in malicious)])
    train = exp.attack.poison(data.train, owned, len(data.class_names), stream(exp.seed, "attack"))
    return replace(data, train=train)


def drawn_canaries(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Canaries:
    """What the audit plants at the clients with examples, except for `malicious [n]`."""
    honest = np.setdiff1d(np.flatnonzero(partition.sizes), malicious)
    return exp.audit.plant(data.train, honest, len(data.class_names), stream(exp.seed, "audit"))


def planted(data: Data, partition: Partition, canaries: Canaries) -> tuple[Data, Partition]:
    """The training examples with all canaries behind them, and the clients with those that are included."""
    if not len(canaries.index):
        return data, partition
    nobody, examples = partition.clients, len(data.train.y)
    owner = np.full(examples + len(canaries.index), nobody)
    owner[partition.indices] = np.repeat(np.arange(partition.clients), partition.sizes)
    owner[canaries.index] = np.where(canaries.included, canaries.owner, nobody)
    train = Split(torch.cat([data.train.x, canaries.x]), torch.cat([data.train.y, canaries.y]))
    return replace(data, train=train), gather(owner, partition.clients)
