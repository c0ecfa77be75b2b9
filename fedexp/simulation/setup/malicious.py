"""Who is malicious, and what they train on if the federation gives them nothing.

With `scenario.malicious_hold_data=false` the federation divides the data over the honest clients alone, as some papers
on robust aggregation do. A malicious client then trains on copies of a random part of it. That is what the workers of
Karimireddy, He & Jaggi (2022, arXiv 2006.09365) have in the authors' code, whatever they attack with.
"""

from dataclasses import replace

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.parts.dataset.contract import Data, Split
from fedexp.parts.federation.owners import partition_by_owner
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
    """Adds malicious clients, and gives each copies of random training examples of the honest ones.

    It gets as many as an honest client holds on average: so it weighs what they weigh, and attacks on data and on
    updates work as they always do. Returns the data with the copies at the end, the new split, and the malicious `[n]`.
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
    names = ("held_out", "client_validation", "judging")
    parts = {name: getattr(split, name).among(clients, honest_clients) for name in names}
    split = replace(split, partition=partition_by_owner(owner, clients), **parts, names=None)
    return append_copies(data, np.concatenate(drawn)), split, malicious


def append_copies(data: Data, index: np.ndarray) -> Data:
    """The data with copies of the training examples `index [n]` at the end."""
    positions = torch.from_numpy(index)
    columns = (data.train.x, data.train.y, data.train.subject)
    train = Split(*(None if column is None else torch.cat([column, column[positions]]) for column in columns))  # pyright: ignore
    groups = None if data.groups is None else np.concatenate([data.groups, data.groups[index]])
    return replace(data, train=train, groups=groups)
