"""The messages to clients besides training, counted for the traffic and the simulated clock."""

import numpy as np

from fedexp.core.values import Weights


class ExtraMessages:
    """Counts the models that clients evaluate or fine-tune in one round besides training."""

    def __init__(self) -> None:
        self.reported_losses = 0
        self.fine_tuned = 0
        self._evaluators: dict[
            int, tuple[Weights, list[np.ndarray]]
        ] = {}  # by identity of the model, which is kept alive

    def sent_for_evaluation(self, weights: Weights, owner: np.ndarray) -> None:
        """Notes that the clients `owner [n]` report their loss of a model."""
        self.reported_losses += len(owner)
        self._evaluators.setdefault(id(weights), (weights, []))[1].append(owner)

    @property
    def evaluators(self) -> tuple[np.ndarray, ...]:
        """The clients `[n]`, ascending, that evaluated each of the models."""
        return tuple(np.unique(np.concatenate(owners)) for _, owners in self._evaluators.values())
