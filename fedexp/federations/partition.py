"""The value every federation returns: who holds which example, as two arrays."""

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Partition:
    """Client k holds the training examples `indices[offsets[k]:offsets[k + 1]]`.

    `offsets` is int64 [N + 1], `indices` int64 [S]; every example belongs to at most one client.
    """

    offsets: np.ndarray
    indices: np.ndarray

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of each client, int64 [N]."""
        return np.diff(self.offsets)

    def shard(self, client: int) -> np.ndarray:
        """The example indices of one client."""
        return self.indices[self.offsets[client] : self.offsets[client + 1]]

    def sha256(self) -> str:
        """Digest of the split: equal for equal splits on every machine (little-endian int64)."""
        digest = hashlib.sha256(self.offsets.astype("<i8").tobytes())
        digest.update(self.indices.astype("<i8").tobytes())
        return digest.hexdigest()
