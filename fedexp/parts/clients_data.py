"""Questions about the clients' data, behind `ctx.clients_data`.

Legend: n clients asked for, C participants, R models, D entries of a model, W of a row, S examples, K classes.
"""

from typing import Protocol

import numpy as np
import torch

from fedexp.core.values import Plan, Weights
from fedexp.parts.workload import Workload


class ClientsData(Protocol):
    """Questions about clients' data, besides training. Models that they evaluate or fine-tune count as traffic."""

    def class_counts(self, owner: np.ndarray) -> np.ndarray:
        """How many examples of each class these clients hold, int64 [n, K]."""
        ...

    def labels(self, examples: np.ndarray) -> np.ndarray:
        """The classes of the training examples with these numbers `[S]`, int64 [S]."""
        ...

    def groups(self, owner: np.ndarray) -> np.ndarray | None:
        """The groups that these clients are known to belong to, int64 [n]; None where there are none."""
        ...

    def losses_of(self, weights: Weights, plan: Plan) -> np.ndarray:
        """Mean loss of a model on each shard of a plan, float64 [C]; NaN without data."""
        ...

    def judge(self, rows: torch.Tensor, holder: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Mean loss of models `rows [R, D]` on what each of these clients holds out to judge by, float64 [n, R].

        NaN without such examples. Each is sent the models that others hold (`holder [R]`), and tells nobody.
        """
        ...

    def fine_tune(self, row: torch.Tensor, owner: np.ndarray, number: int, epochs: int | None) -> torch.Tensor:
        """The models `[n, D]` that clients fine-tune from one model `[D]` by their rule (`epochs` None: its own).

        Batches are drawn from a stream of round `number`, which is not that of its training. The rows are what the
        server sees: the model itself in the columns that never leave a client, and for a training that is not finite.
        """
        ...

    def train_wrapped(
        self, rule: Workload, rows: torch.Tensor, plan: Plan, *name: str | int
    ) -> tuple[torch.Tensor, np.ndarray]:
        """What a plan's clients make of `rows [n, W]` of the network that another local rule wraps, and their losses.

        These `[n]` are running means over the last epoch. Batches are drawn from the stream `name` of the round, and
        nothing travels for it.
        """
        ...
