"""The counts from which the accountants compute epsilon, kept for clients that have released anything.

Legend: n clients in the ledger, m clients that are asked for.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.client_rows import lookup_by_owner
from fedexp.core.values import SERVER, Memory


@dataclass(frozen=True)
class Ledger:
    """`owner [n]` ascending, and how often each of them released something, `count [n]`."""

    owner: np.ndarray
    count: np.ndarray

    @staticmethod
    def load(memory: Memory) -> "Ledger":
        """The ledger of a memory; empty at first."""
        empty = torch.zeros(0, dtype=torch.int64)
        return Ledger(memory.get("owner", empty).numpy(), memory.get("count", empty).numpy())

    def save(self) -> Memory:
        """The ledger as a memory."""
        return {"owner": torch.from_numpy(self.owner), "count": torch.from_numpy(self.count)}

    def add(self, owner: np.ndarray, count: np.ndarray) -> "Ledger":
        """A ledger with `count [m]` added for clients `owner [m]`, which may repeat; the server has no entry."""
        clients = owner != SERVER
        owners, position = np.unique(np.concatenate([self.owner, owner[clients]]), return_inverse=True)
        total = np.bincount(position, weights=np.concatenate([self.count, count[clients]]), minlength=len(owners))
        return Ledger(owners, total.astype(np.int64))

    def of(self, owner: np.ndarray) -> np.ndarray:
        """The counts of the clients `owner [m]`, int64 [m]; 0 for those without an entry."""
        return lookup_by_owner(owner, self.owner, self.count)
