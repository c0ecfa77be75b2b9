"""Malicious clients' data and the audit's canaries, put into the training data before the first round.

With `scenario.malicious_hold_data=false` the federation divides the data over the honest clients alone, as papers on
robust aggregation do. A malicious client then trains on copies of a random part of it. That is what the workers of
Karimireddy, He & Jaggi (2022, arXiv 2006.09365) have in the authors' code, whatever they attack with.
"""

from dataclasses import replace

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.core.values import Canaries
from fedexp.parts.dataset.contract import Data, Split
from fedexp.parts.federation.owners import partition_by_owner
from fedexp.parts.federation.partition import Partition
from fedexp.simulation.setup.data_split import DataSplit
from fedexp.simulation.setup.experiment import Experiment


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


def give_copies(exp: Experiment, data: Data, split: DataSplit) -> tuple[Data, DataSplit, np.ndarray]:
    """Adds malicious clients without a share of the data, and gives them copies of others' examples.

    Each has copies of as many random training examples of all other clients as one of these holds on average: so it
    weighs what they weigh, and attacks on data and on updates work as they always do. Returns the data with the copies
    at the end, the clients with theirs, and the malicious `[n]`.
    """
    honest = split.partition.clients
    clients = honest + exp.scenario.malicious
    malicious = draw_malicious(exp, clients)
    honest_clients = np.setdiff1d(np.arange(clients), malicious)
    honest_examples, examples = split.partition.indices, len(data.train.y)
    copies = max(1, round(len(honest_examples) / honest))
    drawn = [
        stream(exp.seed, "copies", int(client)).choice(honest_examples, copies, replace=False) for client in malicious
    ]
    owner = np.full(examples + len(drawn) * copies, clients)
    owner[honest_examples] = np.repeat(honest_clients, split.partition.sizes)
    owner[examples:] = np.repeat(malicious, copies)
    held_out = split.held_out.among(clients, honest_clients)
    split = replace(split, partition=partition_by_owner(owner, clients), held_out=held_out)
    return append_copies(data, np.concatenate(drawn)), split, malicious


def append_copies(data: Data, index: np.ndarray) -> Data:
    """The data with copies of the training examples `index [n]` at the end."""
    positions = torch.from_numpy(index)
    columns = (data.train.x, data.train.y, data.train.subject)
    train = Split(*(None if column is None else torch.cat([column, column[positions]]) for column in columns))  # pyright: ignore
    groups = None if data.groups is None else np.concatenate([data.groups, data.groups[index]])
    return replace(data, train=train, groups=groups)


def poison_data(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Data:
    """The data with the examples of the clients `malicious [n]` changed by the attack."""
    owned = np.concatenate([np.zeros(0, np.int64), *(partition.shard(int(client)) for client in malicious)])
    train = exp.attack.poison(data.train, owned, len(data.class_names), stream(exp.seed, "attack"))
    return replace(data, train=train)


def draw_canaries(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Canaries:
    """Draws the audit's canaries for the clients with examples, except `malicious [n]`."""
    honest = np.setdiff1d(np.flatnonzero(partition.sizes), malicious)
    return exp.audit.plant(data.train, honest, len(data.class_names), stream(exp.seed, "audit"))


def plant_canaries(data: Data, partition: Partition, canaries: Canaries) -> tuple[Data, Partition]:
    """Appends all canaries to the training examples, and the included ones to their clients' shards."""
    if not len(canaries.index):
        return data, partition
    nobody, examples = partition.clients, len(data.train.y)
    owner = np.full(examples + len(canaries.index), nobody)
    owner[partition.indices] = np.repeat(np.arange(partition.clients), partition.sizes)
    owner[canaries.index] = np.where(canaries.included, canaries.owner, nobody)
    train = Split(torch.cat([data.train.x, canaries.x]), torch.cat([data.train.y, canaries.y]))
    return replace(data, train=train), partition_by_owner(owner, partition.clients)
