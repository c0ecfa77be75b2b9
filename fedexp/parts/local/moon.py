"""MOON, model-contrastive federated learning (Li et al. 2021, arXiv 2103.16257, equation 3).

An example costs the loss plus mu times -log(r / (r + l)), with r = exp(sim(z, z_r) / tau), l = exp(sim(z, z_l) / tau).
Here z are its features in the model in training, z_r in the received one and z_l in the one that the client trained
last, and sim is the cosine. So features are drawn to those of the global model, and away from the client's own old
ones.

Features are what the last linear layer is given; the paper's projection head is a matter of the model. A client that
never trained compares with the first model. The compared models answer in evaluation mode. The paper takes mu from 0.1
to 10 (5 for CIFAR-10), tau = 0.5, and SGD with momentum 0.9. The simulation keeps a row for every client that was ever
selected.
"""

from typing import Annotated, ClassVar

import numpy as np
import torch
from torch.nn import functional as F

from fedexp.core.client_rows import restore_rows, store_rows
from fedexp.core.part import Positive, Range
from fedexp.core.values import Memory, Trained
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.local.contract import ModelOutputs
from fedexp.parts.local.heavy_ball import HeavyBall
from fedexp.parts.loss.contract import Loss
from fedexp.parts.model.contract import Model
from fedexp.parts.network_errors import refuse_without_features


def contrastive_loss(
    query: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, temperature: float
) -> torch.Tensor:
    """The contrastive loss `[B]` of features `[B, ...]`: small if `query` is like `positive`, unlike `negative`."""
    query, positive, negative = (features.flatten(1) for features in (query, positive, negative))
    difference = F.cosine_similarity(query, negative, dim=1) - F.cosine_similarity(query, positive, dim=1)
    return F.softplus(difference / temperature)


class Moon(HeavyBall):
    """SGD on the loss and a contrastive term. Remembers the last model of every client."""

    keeps_rows = True
    compares = ("received", "last")

    adds_nothing_at: ClassVar = {"mu": 0.0}

    mu: Annotated[float, Range(0)] = 1.0
    temperature: Annotated[float, Positive] = 0.5

    def refuse(self, model: Model, facts: Facts) -> None:
        refuse_without_features("local=moon compares", model, facts)

    def reference_models(self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context) -> torch.Tensor:
        first = ctx.first.flat.expand(len(owner), -1)
        return torch.stack([received, restore_rows(memory, owner, first)])

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        received, last = reference_outputs
        term = contrastive_loss(own_outputs.features, received.features, last.features, self.temperature)
        return loss.per_example(own_outputs.outputs, targets) + self.mu * term

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        new_memory = store_rows(memory, trained, trained.rows)  # before delta(), which overwrites the rows
        return trained.delta(), new_memory
