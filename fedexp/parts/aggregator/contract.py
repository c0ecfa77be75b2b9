"""The contract of aggregators: how the uploads of a round become a proposal for the next model.

Legend: C participants, D entries of a model.
"""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
import torch

from fedexp.core.device_arrays import to_device
from fedexp.core.errors import ConfigError
from fedexp.core.fields import resembles, type_and_shape
from fedexp.core.part import Part, describe_choice
from fedexp.core.values import Memory, Uploads, Weights
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.contract import Model


class Aggregator(Part):
    """How the uploads of the participants become a proposal for the next model."""

    needs_validation = False
    needs_public = False  # whether the server must have public data
    needs_classes = False  # whether it can only work where targets are classes
    keeps_layout = True  # whether the proposal has the shape of the clients' networks
    keeps_rows = False  # whether it remembers what each client sent, or the sum of it
    needs_models = False  # whether it takes the present model with an update to be the client's model
    own_starts = False  # whether clients start from models of their own, and the global one is only measured
    client_keys: ClassVar[tuple[str, ...]] = ()  # keys that the local rule must have, too, with the same values
    shared_keys: ClassVar[tuple[str, ...]] = ()  # as these, but only of a local rule that has all of them
    needs_cohort = ""  # why all rows must have begun from one model, in words that end a refusal
    averages = False  # whether its proposal is the mean of the rows by their shares
    normalises = False  # whether it divides each update by how much its client trained
    reveals = ""  # what it learns of single clients beside what they upload, in words
    hides_rows = False  # whether nobody sees the row of a single client
    weighting: Literal["num_samples", "uniform"] = "num_samples"

    @property
    def averages_uniformly(self) -> bool:
        """Whether its proposal is the mean of the rows with equal shares."""
        return self.averages and self.weighting == "uniform"

    @classmethod
    def missing_methods(cls) -> list[str]:
        return [] if cls.combine is not Aggregator.combine else super().missing_methods()  # which needs no reduce

    def refuse(self, model: Model, facts: Facts) -> None:
        """Raises ConfigError, with the reason, if it cannot combine networks of this kind."""

    def refuse_rows(self, rows: int) -> None:
        """Raises ConfigError, with the reason, if it cannot combine as many rows as a round is going to have."""

    def upload_bytes(self, entries: int) -> int:
        """What a client sends for a row of so many entries: each as a float32."""
        return 4 * entries

    def row_weights(self, uploads: Uploads) -> np.ndarray:
        """The weight of each row before normalisation, float64 [C]."""
        examples = uploads.examples if self.weighting == "num_samples" else uploads.examples > 0
        return examples * uploads.importance

    def shares(self, uploads: Uploads) -> torch.Tensor:
        """Weights of the rows, float64 [C], summing to one (all zero where there is nothing to weigh)."""
        weight = self.row_weights(uploads)
        total = weight.sum()
        return to_device(weight / total if total > 0 else weight, uploads.delta.device)

    @abstractmethod
    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        """One row `[D]` of the rows `delta [C, D]`, given their shares `[C]`."""
        raise NotImplementedError

    def dispatch(self, weights: Weights, owner: np.ndarray, memory: Memory) -> torch.Tensor:
        """What each participant starts from, a row of the clients' network each: `[C, D]`, the global model for all."""
        return weights.flat.expand(len(owner), -1)

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        """The models that these clients use, `[n, D]`, given the global model's `rows`: here the global one."""
        return rows

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        """The proposal: the model plus the reduced delta, or the model itself where all `row_weights` are 0.

        Where this very model is returned, the server's optimizer takes no step.
        """
        if not self.row_weights(uploads).any():
            return weights, memory
        row = self.reduce(uploads.delta, self.shares(uploads))
        if not resembles(row, weights.flat, weights.flat.shape):
            raise ConfigError(
                f"{describe_choice('aggregator', self)}: reduce must return a row {weights.flat.dtype} "
                f"[{len(weights.flat)}] of the rows {list(uploads.delta.shape)}, got {type_and_shape(row)}"
            )
        return Weights(weights.flat + row, weights.layout), memory
