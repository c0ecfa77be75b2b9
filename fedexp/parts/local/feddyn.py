"""FedDyn's clients (Acar et al. 2021, arXiv 2111.04263, algorithm 1): each descends its loss, regularised dynamically.

A client that received x descends F_k(w) - <g_k, w> + alpha/2 ||w - x||^2 and ends at w_k; then g_k <- g_k - alpha
(w_k - x), zero at first. At the minimum g_k is the gradient of F_k there, so a model that all agree on is a minimum of
their sum. `aggregator=feddyn` corrects the mean by the mean of the g_k. One row tells both terms: their gradient is
alpha (w - x - g_k / alpha).

Small alpha is not FedAvg, since the server divides by it; alpha = 0 is. Deviations: alpha is the same for all clients,
where the authors' code divides it by a client's examples over their mean number; the regulariser covers the trainable
entries. The simulation keeps a row for every client that was ever heard. A training that is not finite leaves g_k as it
was, and so does one whose message the server does not get: such a client took no part. Else the server's mean of the
g_k would be another one for ever, and its model would come to rest elsewhere.
"""

from typing import Annotated, ClassVar

import numpy as np
import torch

from fedexp.parts import ClientRows, Context, Memory, Range, Trained, Uploads, rows_or_zeros
from fedexp.parts.local.any_optimizer import AnyOptimizer


class FedDyn(AnyOptimizer):
    """Steps along the gradient plus alpha times the way from a point that the client's memory has moved."""

    keeps_rows = True
    no_gradient_sum = "steps along what clients remember of earlier rounds, which is no gradient of this one"

    server_keys: ClassVar = ("alpha",)
    adds_nothing_at: ClassVar = {"alpha": 0.0}

    alpha: Annotated[float, Range(0)] = 0.01

    @property
    def is_gradient_sum(self) -> bool:
        return False

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = received[:, : ctx.layout.parameters]
        if not self.alpha:
            return received, x
        return received, x + rows_or_zeros(memory, owner, x) / self.alpha

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return super().direction(grad, w, anchor) + self.alpha * (w - anchor)

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        sent = trained.delta()
        moved = sent[:, : ctx.layout.parameters]
        gradients = rows_or_zeros(memory, trained.owner, moved) - self.alpha * moved
        pending = pending_gradients(memory, gradients)
        pending = pending.with_valid_rows(trained.owner, gradients, trained.valid_rows())
        return sent, memory | {"awaited": pending.owner, "gradients": pending.rows}

    def receive(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        pending = pending_gradients(memory, uploads.delta[:, : ctx.layout.parameters])
        owner, rows = pending.owner.numpy(), pending.rows
        stored = ClientRows.load(
            {name: memory[name] for name in ("owner", "rows") if name in memory}, rows.shape[1], rows
        )
        return stored.with_valid_rows(owner, rows, np.isin(owner, uploads.owner)).save()


def pending_gradients(memory: Memory, like: torch.Tensor) -> ClientRows:
    """The g_k of clients that trained in this round, until it is clear whose upload arrived; `like` is `[n, P]`.

    A round's jobs may come in several groups.
    """
    pending = {"owner": memory["awaited"], "rows": memory["gradients"]} if "awaited" in memory else {}
    return ClientRows.load(pending, like.shape[1], like)
