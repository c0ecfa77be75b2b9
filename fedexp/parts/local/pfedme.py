"""pFedMe's clients (Dinh et al. 2020, arXiv 2006.08848, algorithm 1): models of their own inside a Moreau envelope.

A participant that received w takes each of its batches in turn: from theta = w it takes `inner_steps` steps theta <-
theta - theta_lr (grad F(theta) + lam (theta - w)) on that batch, then one step w <- w - lr lam (w - theta). It sends w
and keeps the last theta, which is what it uses; a client that was never asked uses the global model. The paper's mixing
by beta is a server's step: `server_optimizer=momentum server_optimizer.beta=0 server_optimizer.lr=BETA`.

Deviation: in algorithm 1 and in the authors' code all clients train in every round and those that were selected are
averaged; here only these train. That code also decays theta by 0.001. A schedule moves lr alone. With one inner step
that is SGD at the rate lr lam theta_lr. The paper leaves open where theta begins; the authors' code goes on from the
theta of the batch before. The simulation keeps a row for every client that was ever selected. A training that is not
finite leaves theta as it was.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import (
    LocalRule,
    Memory,
    Positive,
    Range,
    Trained,
    descend,
    restore_rows,
    select_rows,
    store_rows,
)
from fedexp.parts.context import Context


class PFedMe(LocalRule):
    """Steps on theta, and after each batch a step of w, which rests in a slot meanwhile."""

    keeps_rows = True
    is_gradient_sum = False

    lr: Annotated[float, Positive] = 0.005
    theta_lr: Annotated[float, Positive] = 0.1
    lam: Annotated[float, Range(0)] = 15.0
    inner_steps: Annotated[int, Range(1)] = 5

    @property
    def slots(self) -> int:
        return 2

    @property
    def steps_per_batch(self) -> int:
        return self.inner_steps

    @property
    def finish_needs_slot(self) -> bool:
        return True

    def fill(self, slots: torch.Tensor, anchor: torch.Tensor) -> None:
        slots.copy_(anchor.expand_as(slots))

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        outer, theta = slots.unbind()
        descend(w, grad.add(w - outer, alpha=self.lam), self.theta_lr, active)
        ends = (step % self.inner_steps == 0).to(w.dtype)
        ends = ends.expand(1) if active is None else ends * active
        theta.copy_(select_rows(ends, w, theta))
        outer.copy_(select_rows(ends, outer - (outer - w) * (self.lr * self.lam), outer))
        w.copy_(select_rows(ends, outer, w))

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        assert trained.slot is not None
        return trained.delta(), store_rows(memory, trained, trained.slot)

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        return restore_rows(memory, owner, rows)
