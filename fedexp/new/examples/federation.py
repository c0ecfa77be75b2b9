"""Which client holds which examples: write here how they are divided.

As it stands, shuffled and cut in equal parts. What depends on labels or persons finds them in `labels` and `subjects`.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Federation, Partition, Range


class OwnFederation(Federation):
    """`clients` of the same size, give or take one example."""

    clients: Annotated[int, Range(1)]

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        offsets = np.arange(self.clients + 1) * len(labels) // self.clients
        return Partition(offsets, rng.permutation(len(labels)))
