"""Fed+'s clients (Yu et al. 2020, arXiv 2009.06303): personal models, pulled towards a centre.

Client k keeps w_k, at first the first model. Selected in a round with centre c, it fixes z = c + prox(w_k - c) with
rho = mu / alpha, starts from (1 - mixing) w_k + mixing c and takes steps w <- theta (w - lr grad) + (1 - theta) z with
theta = 1 / (1 + alpha lr), unless theta is given. A client that is not selected keeps w_k.

`mix=step` mixes after each mini-batch step, as in the paper; `epoch` after each whole epoch, as in published code. z
pulls only the trainable entries. With mu = 0 there is no federation at all, with theta = 1 no pull; theta = mixing = 1
is FedAvg's training. The simulation keeps a row for every client that was ever selected. The server's row starts from
the centre.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.core.client_rows import restore_rows, store_rows
from fedexp.core.part import Fraction, Positive, Range
from fedexp.core.values import SERVER, Memory, Trained
from fedexp.maths.optimizer_steps import select_rows
from fedexp.maths.proximal import Penalty, proximal_residual
from fedexp.parts.context import Context
from fedexp.parts.local.heavy_ball import HeavyBall


class FedPlus(HeavyBall):
    """SGD on a client's own model, mixed with a point between it and the received centre."""

    keeps_rows = True
    is_gradient_sum = False

    penalty: Penalty = "l2"
    mu: Annotated[float, Range(0)] = 0.3
    alpha: Annotated[float, Positive] = 0.3
    theta: Annotated[float, Fraction] | None = None
    mixing: Annotated[float, Fraction] = 0.0
    mix: Literal["step", "epoch"] = "step"

    @property
    def step_weight(self) -> float:
        """Theta: the weight of the local step; 1 - theta is the weight of z."""
        return 1 / (1 + self.alpha * self.lr) if self.theta is None else self.theta

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        client = torch.from_numpy(owner != SERVER).to(received.device)
        start = self.client_models(owner, torch.where(client[:, None], ctx.first.flat, received), memory)
        w, centre = start[:, : ctx.layout.parameters], received[:, : ctx.layout.parameters]
        z = w - proximal_residual(w - centre, self.penalty, self.mu / self.alpha)
        return torch.lerp(start, received, self.mixing), z

    def pulled_steps(self, steps: int, epoch: int) -> np.ndarray:
        interval = 1 if self.mix == "step" else max(1, epoch)
        return np.arange(1, steps + 1) % interval == 0

    def pull(self, w: torch.Tensor, anchor: torch.Tensor, pull_mask: torch.Tensor | None) -> None:
        if pull_mask is None:
            w.lerp_(anchor, 1 - self.step_weight)
        else:
            w.copy_(select_rows(pull_mask, w.lerp(anchor, pull_mask * (1 - self.step_weight)), w))

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        new_memory = store_rows(memory, trained, trained.rows)  # before delta(), which overwrites the rows
        return trained.delta(), new_memory

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        return restore_rows(memory, owner, rows)
