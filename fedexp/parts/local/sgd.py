"""Local SGD: w <- w - lr * gradient over mini-batches (McMahan et al. 2017, ClientUpdate).

A client with n examples takes `epochs * ceil(n / batch_size)` steps (floor with `drop_last`), or exactly `steps`.

With `worker_momentum` a client keeps its v from round to round: v <- momentum v + g goes on where it ended when the
client was last asked, whatever the model was since. With one step a round, what is sent is -lr v, as in the experiments
of Karimireddy et al. 2022 (arXiv 2006.09365) on Byzantine clients. The simulation keeps a row for every client that was
ever asked. A training that is not finite leaves v as it was.
"""

import numpy as np
import torch

from fedexp.parts import ConfigError, Context, Memory, Trained, rows_or_zeros, select_rows, store_rows
from fedexp.parts.local.heavy_ball import HeavyBall


class SGD(HeavyBall):
    """Stochastic gradient descent, with momentum that may last."""

    needs_all_rows = False
    no_gradient_sum = (
        "with local.worker_momentum=true goes on with the momentum of other rounds, which weighs other gradients"
    )

    worker_momentum: bool = False

    def check(self) -> None:
        super().check()
        if self.worker_momentum and not self.momentum:
            raise ConfigError("SGD.worker_momentum needs momentum > 0, got 0; set it, for example to 0.9")

    @property
    def keeps_rows(self) -> bool:
        return self.worker_momentum

    @property
    def is_gradient_sum(self) -> bool:
        return not self.worker_momentum

    @property
    def finish_needs_slot(self) -> bool:
        return self.worker_momentum

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        start, anchor = super().begin(received, owner, memory, ctx)
        if not self.worker_momentum:
            return start, anchor
        return start, rows_or_zeros(memory, owner, anchor)

    def fill(self, slots: torch.Tensor, anchor: torch.Tensor) -> None:
        if self.worker_momentum:
            slots[0].copy_(anchor)
        else:
            super().fill(slots, anchor)

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        before = slots[0].clone() if self.worker_momentum and active is not None else None
        super().update(w, grad, slots, step, active)
        if before is not None and active is not None:  # a row that is done keeps its momentum, too
            slots[0].copy_(select_rows(active, slots[0], before))

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        if trained.slot is None:
            return super().finish(trained, memory, ctx)
        new_memory = store_rows(memory, trained, trained.slot)  # before delta(), which overwrites the rows
        return trained.delta(), new_memory
