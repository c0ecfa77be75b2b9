"""Ditto's clients (Li et al. 2021, arXiv 2012.04221, algorithm 1): FedAvg, and beside it a model of each client's own.

A participant that received w trains it as in FedAvg, and on the same batches its own v: v <- v - lr (grad F_k(v) +
lam (v - w)). v begins as the first model, never leaves its client, and is what the client uses; a client that was never
asked uses the global model. lam = 0 trains every client alone, and a large one holds v at the global model.

A promise of privacy covers what is sent, not v, which is trained without noise. Deviation: v takes as many steps as w,
at the same rate, where the paper leaves both free. The simulation keeps a row for every client that was ever selected.
A training that is not finite leaves v as it was.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Context, Memory, Range, Trained, restore_rows, store_rows
from fedexp.parts.local.heavy_ball import HeavyBall


class Ditto(HeavyBall):
    """SGD, and a companion that is drawn to the received model."""

    keeps_rows = True

    lam: Annotated[float, Range(0)] = 0.1

    @property
    def companion(self) -> "DittoCompanion":
        return self.settings_as(DittoCompanion)


class DittoCompanion(HeavyBall):
    """SGD on a client's own model, which stays near the received one."""

    keeps_rows = True

    lam: Annotated[float, Range(0)] = 0.1

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        start = self.client_models(owner, ctx.first.flat.expand(len(owner), -1), memory)
        return start, received[:, : ctx.layout.parameters]

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        direction = super().direction(grad, w, anchor)
        return direction + (w - anchor) * self.lam if self.lam else direction

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        return trained.rows, store_rows(memory, trained, trained.rows)

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        return restore_rows(memory, owner, rows)
