"""Independent and identically distributed clients.

Source: the IID partition of McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
Data" (AISTATS 2017, arXiv 1602.05629, section 3): the data is shuffled and cut in N parts.

Deviation: the paper's sizes divide evenly; here they differ by at most one, and lower client numbers have the larger
parts. With more clients than examples the first S clients hold one example each and the others none.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedexp.core.part import Range
from fedexp.parts.federation.contract import Federation
from fedexp.parts.federation.owners import partition_by_owner
from fedexp.parts.federation.partition import Partition


def split_evenly(examples: int, clients: int, rng: np.random.Generator) -> Partition:
    """Deals the shuffled examples to the clients in turn."""
    owner = np.empty(examples, dtype=np.int32)
    owner[rng.permutation(examples)] = np.arange(examples, dtype=np.int32) % clients
    return partition_by_owner(owner, clients)


@dataclass(frozen=True, kw_only=True)
class IID(Federation):
    """Every client is a random sample of the same size (give or take one example)."""

    clients: Annotated[int, Range(1)]

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        return split_evenly(len(labels), self.clients, rng)
