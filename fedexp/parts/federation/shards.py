"""Clients that hold a few shards of the data sorted by label.

Source: the pathological non-IID partition of McMahan et al., "Communication-Efficient Learning of Deep Networks from
Decentralized Data" (AISTATS 2017, arXiv 1602.05629, section 3): sort by label, cut in shards of equal size, give each
client two shards at random.

Deviation: the paper's shards divide evenly (200 of 300); here shard i is [i S / n, (i + 1) S / n) of the sorted data
for n = N shards_per_client, so any sizes work and shards differ by at most one example. With more shards than examples
some shards are empty. The sort is stable: examples of one class keep the order of the dataset.

`assign=in_turn` draws nothing: the shards are cut in as many equal blocks as there are classes; the first of each block
go to the clients, then the second of each, so that with two shards and ten classes every client holds the classes 0 and
1, or 2 and 3, and so on. So deals github.com/vaseline555/Federated-Averaging-PyTorch (src/utils.py, commit 1afb2be).
"""

from typing import Annotated, Literal

import numpy as np

from fedexp.parts import Federation, Partition, Range, partition_by_owner


def split_in_shards(labels: np.ndarray, clients: int, shards_per_client: int, rng: np.random.Generator) -> Partition:
    """Sorts `labels [S]`, cuts them in equal shards and gives `shards_per_client` random ones to each client."""
    shards = clients * shards_per_client
    return _give_shards(labels, rng.permutation(shards) // shards_per_client, clients)


def deal_in_turn(labels: np.ndarray, clients: int, shards_per_client: int, classes: int) -> Partition:
    """Sorts `labels [S]` and deals their shards: the first of each of `classes` blocks, then the second of each."""
    shards = clients * shards_per_client
    turns = np.argsort(np.arange(shards) % max(1, shards // classes), kind="stable")
    holder = np.empty(shards, dtype=np.int64)
    holder[turns] = np.arange(shards) // shards_per_client
    return _give_shards(labels, holder, clients)


def _give_shards(labels: np.ndarray, holder: np.ndarray, clients: int) -> Partition:
    """Cuts the sorted `labels [S]` in equal shards, whose clients are `holder [shards]`."""
    bounds = np.arange(len(holder) + 1) * len(labels) // len(holder)
    owner = np.empty(len(labels), dtype=np.int32)
    owner[np.argsort(labels, kind="stable")] = np.repeat(holder, np.diff(bounds))
    return partition_by_owner(owner, clients)


class Shards(Federation):
    """Sorted by label, cut in shards, a few shards for each client."""

    needs_classes = True

    clients: Annotated[int, Range(1)]
    shards_per_client: Annotated[int, Range(1)] = 2
    assign: Literal["random", "in_turn"] = "random"

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        if self.assign == "in_turn":
            return deal_in_turn(labels, self.clients, self.shards_per_client, classes)
        return split_in_shards(labels, self.clients, self.shards_per_client, rng)
