"""Central training: one client that holds everything, the baseline of every federation."""

import numpy as np

from fedexp.parts import Federation, Partition


class Central(Federation):
    """One client with all training examples; draws nothing."""

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        return Partition(np.array([0, len(labels)], dtype=np.int64), np.arange(len(labels), dtype=np.int64))
