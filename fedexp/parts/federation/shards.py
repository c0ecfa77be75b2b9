"""Clients that hold a few shards of the data sorted by label.

Source: the pathological non-IID partition of McMahan et al., "Communication-Efficient Learning of Deep Networks from
Decentralized Data" (AISTATS 2017, arXiv 1602.05629, section 3): sort by label, cut in shards of equal size, give each
client two shards at random.

Deviation: the paper's shards divide evenly (200 of 300); here shard i is [i S / n, (i + 1) S / n) of the sorted data
for n = N shards_per_client, so any sizes work and shards differ by at most one example. With more shards than examples
some shards are empty. The sort is stable: examples of one class keep the order of the dataset.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedexp.core.part import Range
from fedexp.parts.federation.contract import Federation
from fedexp.parts.federation.owners import partition_by_owner
from fedexp.parts.federation.partition import Partition


def split_in_shards(labels: np.ndarray, clients: int, shards_per_client: int, rng: np.random.Generator) -> Partition:
    """Sorts `labels [S]`, cuts them in equal shards and gives `shards_per_client` random ones to each client."""
    shards = clients * shards_per_client
    bounds = np.arange(shards + 1) * len(labels) // shards
    holder = rng.permutation(shards) // shards_per_client
    owner = np.empty(len(labels), dtype=np.int32)
    owner[np.argsort(labels, kind="stable")] = np.repeat(holder, np.diff(bounds))
    return partition_by_owner(owner, clients)


@dataclass(frozen=True, kw_only=True)
class Shards(Federation):
    """Sorted by label, cut in shards, a few shards for each client."""

    needs_classes = True

    clients: Annotated[int, Range(1)]
    shards_per_client: Annotated[int, Range(1)] = 2

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        return split_in_shards(labels, self.clients, self.shards_per_client, rng)
