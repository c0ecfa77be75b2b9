"""Poisoned examples and the audit's canaries, put into the training data before the first round.

Who is malicious is drawn in `malicious.py`.
"""

from dataclasses import replace

import numpy as np
import torch

from fedexp.core.random_streams import stream
from fedexp.core.values import Canaries
from fedexp.parts.dataset.contract import Data, Split
from fedexp.parts.federation.owners import partition_by_owner
from fedexp.parts.federation.partition import Partition
from fedexp.simulation.setup.experiment import Experiment


def poison_data(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Data:
    """The data with the examples of the clients `malicious [n]` changed by the attack."""
    owned = np.concatenate([np.zeros(0, np.int64), *(partition.shard(int(client)) for client in malicious)])
    train = exp.attack.poison(data.train, owned, len(data.class_names), stream(exp.seed, "attack"))
    return replace(data, train=train)


def draw_canaries(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Canaries:
    """Draws the audit's canaries for the clients with examples, except `malicious [n]`."""
    honest = partition.holders(malicious)
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
