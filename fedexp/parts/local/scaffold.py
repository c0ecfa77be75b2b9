"""SCAFFOLD (Karimireddy et al. 2020, arXiv 1910.06378, algorithm 1 with option II): steps without client drift.

Every client has a control variate c_i and the server c, all zero at first. A client that received x takes K steps
y <- y - lr (grad - c_i + c), and then c_i+ = c_i - c + (x - y) / (K lr), the mean of the gradients along its steps. The
server adds the differences c_i+ - c_i, divided by the number N of clients that hold examples, to c.

With momentum, Adam or AdamW the corrected gradient grad - c_i + c is what they step along, and c_i+ is still that mean:
the gradients are added up as they come, since (x - y) / (K lr) is no mean of them. Published code that keeps the
formula makes variates up to 1 / (1 - momentum) times too long. Coupled weight decay counts as part of the gradient.

The difference c_i+ - c_i is sent beside the delta, in one message: what an attack, noise or rounding does to a message
reaches the variates, too. c moves by what arrives, whatever rule combines the deltas. A client whose message is lost
keeps its new c_i all the same. A training that is not finite changes no variate.

Deviations: the paper's mean of the models is `aggregator.weighting=uniform`, its server step size that of
`server_optimizer`. The paper's steps are plain SGD. Legend: C participants, n clients, P trainable entries.
"""

import numpy as np
import torch

from fedexp.parts import ClientRows, Context, Memory, Trained, Uploads, mask_rows, rows_or_zeros
from fedexp.parts.local.any_optimizer import AnyOptimizer


class Scaffold(AnyOptimizer):
    """Steps along the gradient minus the client's variate plus the server's."""

    extra_rows = ("variate",)
    keeps_rows = True

    @property
    def finish_needs_slot(self) -> bool:
        """Whether the gradients are summed in the last slot; for plain SGD the sum follows from the final model."""
        return self.optimizer != "sgd" or self.momentum > 0

    @property
    def slots(self) -> int:
        return super().slots + self.finish_needs_slot

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        like = received[:, : ctx.layout.parameters]
        return received, server_variate(memory, like) - rows_or_zeros(memory, owner, like)

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return super().direction(grad, w, anchor) + anchor

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        if self.finish_needs_slot:
            slots[-1].add_(grad if active is None else mask_rows(grad, active))
            slots = slots[:-1]
        super().update(w, grad, slots, step, active)

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        sent, parameters = trained.delta(), ctx.layout.parameters
        changes = torch.zeros_like(sent[:, :parameters])
        usable = np.flatnonzero(trained.valid_rows())
        if self.lr == 0 and trained.slot is None:  # nobody moved, so nothing is known of the gradients
            usable = usable[:0]
        owner, positions = trained.owner[usable], torch.from_numpy(usable).to(sent.device)
        steps, trainable_delta = trained.steps[usable, None], sent[positions, :parameters]
        old, server = rows_or_zeros(memory, owner, trainable_delta), server_variate(memory, trainable_delta)
        gradient_sum, length = (
            (trainable_delta, steps * -self.lr) if trained.slot is None else (trained.slot[positions], steps)
        )
        new = old - server + gradient_sum / torch.from_numpy(length).to(gradient_sum)
        new_memory = ClientRows.load(memory, parameters, sent).with_rows(owner, new).save()
        return torch.cat([sent, changes.index_copy(0, positions, new - old)], dim=1), memory | new_memory

    def receive(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        changes = uploads.extra["variate"]
        step = changes.double().sum(dim=0) / int(np.count_nonzero(ctx.sizes))
        server = server_variate(memory, changes)
        return memory | {"server": server + step.to(server.dtype)}


def server_variate(memory: Memory, like: torch.Tensor) -> torch.Tensor:
    """The server's variate c, `[P]`; `like` is `[n, P]`."""
    return memory.get("server", like.new_zeros(like.shape[1]))
