"""The messages to clients besides training, counted for the traffic and the simulated clock."""

import numpy as np

from fedexp.core.values import Weights


class Besides:
    """Counts the models that clients evaluate or fine-tune in one round besides training."""

    def __init__(self) -> None:
        self.answers = 0
        self.tuned = 0
        self._judges: dict[int, tuple[Weights, list[np.ndarray]]] = {}  # by identity of the model, which is kept alive

    def judging(self, weights: Weights, owner: np.ndarray) -> None:
        """Notes that the clients `owner [n]` report their loss of a model."""
        self.answers += len(owner)
        self._judges.setdefault(id(weights), (weights, []))[1].append(owner)

    @property
    def judges(self) -> tuple[np.ndarray, ...]:
        """The clients `[n]`, ascending, that evaluated each of the models."""
        return tuple(np.unique(np.concatenate(owners)) for _, owners in self._judges.values())
