"""The contract of clusterings. The base has one model that all clients share.

Of several models the first is the global one, that everything outside this room looks at; the others are the clusters'.
Legend: C participants, N clients, M models, D entries of a model.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch

from fedexp.core.part import Part
from fedexp.core.values import Memory, Plan, Uploads, Weights
from fedexp.maths.rows import mix_rows
from fedexp.parts.context import Context

Models = tuple[Weights, ...]
Event = tuple[int, str, int, int, float | None]  # round, what, client (or SERVER), cluster from 1, distance


def mean_of_clusters(models: Models, examples: np.ndarray) -> Weights:
    """The mean of the clusters' models by the examples `[M - 1]` of their members; without any the global one."""
    if not examples.any():
        return models[0]
    share = torch.from_numpy(examples / examples.sum()).to(models[0].flat.device)
    return replace(models[0], flat=mix_rows(share[None], torch.stack([weights.flat for weights in models[1:]]))[0])


class Clustering(Part):
    """Who trains which model. `memory["events"]` holds what happened in the round, for clusters.csv."""

    has_clusters: ClassVar[bool] = False  # whether there are models beside the global one
    needs_public: ClassVar[bool] = False
    compares_updates: ClassVar[bool] = False  # whether it looks at the updates of single clients
    reveals: ClassVar[str] = ""  # what it learns of single clients beside what they upload, in words

    @property
    def needs_classes(self) -> bool:
        """Whether it can only work where targets are classes, as what is measured of several models does."""
        return self.has_clusters

    def refuse(self, clients: int | None) -> None:
        """Raises ConfigError if it cannot work with so many clients (None: unknown before data is loaded)."""

    def assign(
        self, models: Models, plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[Models, Plan, np.ndarray, Memory]:
        """The models of this round, who of the plan takes part, and the number of each participant's model, `[C]`."""
        return models, plan, np.zeros(len(plan.owner), dtype=np.int64), memory

    def regroup(self, models: Models, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Models, Memory]:
        """The models after the round, and the memory with whoever arrived, changed or left."""
        return models, memory

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        """The number of the model that each of these clients uses, int64 [n]: the global one, 0."""
        return np.zeros(len(owner), dtype=np.int64)
