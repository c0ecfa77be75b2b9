"""Who has done how much: the counts from which the accountants work, kept for those clients that did anything."""

from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.values import SERVER, Memory, looked_up


@dataclass(frozen=True)
class Ledger:
    """`owner [n]` ascending, and how often each of them released something, `count [n]`."""

    owner: np.ndarray
    count: np.ndarray

    @staticmethod
    def load(memory: Memory) -> "Ledger":
        """What a memory holds; empty at first."""
        nothing = torch.zeros(0, dtype=torch.int64)
        return Ledger(memory.get("owner", nothing).numpy(), memory.get("count", nothing).numpy())

    def save(self) -> Memory:
        """As a memory."""
        return {"owner": torch.from_numpy(self.owner), "count": torch.from_numpy(self.count)}

    def add(self, owner: np.ndarray, count: np.ndarray) -> "Ledger":
        """With more for these clients, who may appear more than once; the server has no ledger."""
        clients = owner != SERVER
        known, place = np.unique(np.concatenate([self.owner, owner[clients]]), return_inverse=True)
        total = np.bincount(place, weights=np.concatenate([self.count, count[clients]]), minlength=len(known))
        return Ledger(known, total.astype(np.int64))

    def of(self, owner: np.ndarray) -> np.ndarray:
        """What these clients have, int64 [n]; 0 for those who never did anything."""
        return looked_up(owner, self.owner, self.count)
