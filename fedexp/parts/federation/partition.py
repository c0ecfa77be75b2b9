"""The value that every federation returns: which client holds which example, as arrays."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Partition:
    """Client k holds the training examples `indices[offsets[k]:offsets[k + 1]]`, the server itself those of `server`.

    `offsets` is int64 [N + 1], `indices` int64 [S], `server` int64 [m], ascending; every example belongs to at most one
    of them. The server's examples are public: no client has them.
    """

    offsets: np.ndarray
    indices: np.ndarray
    server: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of examples of each client, int64 [N]."""
        return np.diff(self.offsets)

    def holders(self, excluded: np.ndarray) -> np.ndarray:
        """The clients `[n]` that hold examples, ascending, without those `excluded [m]`."""
        return np.setdiff1d(np.flatnonzero(self.sizes), excluded)

    def shard(self, client: int) -> np.ndarray:
        """The example indices `[n]` of one client."""
        return self.indices[self.offsets[client] : self.offsets[client + 1]]

    def of(self, clients: np.ndarray) -> "Partition":
        """The partition of the `clients [n]` alone, ascending, which get the numbers from 0."""
        if len(clients) == self.clients:
            return self
        mask = np.isin(np.arange(self.clients), clients)
        offsets = np.concatenate([[0], np.cumsum(self.sizes[mask])]).astype(np.int64)
        return Partition(offsets, self.indices[np.repeat(mask, self.sizes)], self.server)

    def among(self, clients: int, numbers: np.ndarray) -> "Partition":
        """The same clients with new `numbers [N]`, ascending, in a partition of `clients`; the others hold nothing."""
        sizes = np.zeros(clients, dtype=np.int64)
        sizes[numbers] = self.sizes
        return Partition(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), self.indices, self.server)

    def pool(self) -> "Partition":
        """The partition in which one client holds what all clients hold."""
        return Partition(np.array([0, len(self.indices)], dtype=np.int64), np.sort(self.indices), self.server)

    def sha256(self) -> str:
        """Digest of the clients' split: the same for the same split on every machine (little-endian int64)."""
        digest = hashlib.sha256(self.offsets.astype("<i8").tobytes())
        digest.update(self.indices.astype("<i8").tobytes())
        return digest.hexdigest()
