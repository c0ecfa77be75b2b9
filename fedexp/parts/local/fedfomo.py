"""FedFomo, federated first-order model optimization (Zhang et al. 2021, arXiv 2012.08565).

Client i keeps the model w_i that it trained last. Selected, it is sent the models w_j that the server got last from
each of the others, takes their losses L_i on examples of its own that it holds out, and starts from w_i + sum_j p_ij
(w_j - w_i). Here p_ij is proportional to max(0, (L_i(w_i) - L_i(w_j)) / |w_j - w_i|), and the p_ij of a client sum to
one; where no model is better than its own, nothing moves. What it uses is its own w_i.

`judging_fraction` of a client's training examples are held out, and not trained on; they are no part of those that
models are measured on (`evaluation.personal_fraction`). The models that it is sent count in mb_down. Lengths are those
of trainable entries.

Deviations: the paper sends each client M models, mostly those that helped it before; here all are sent. A client that
takes part for the first time starts from the global model, which is the mean of those that came, and otherwise only
measured. A client that holds nothing out goes on from its own model. With `pacing=over_selection` only those who count
are sent other models, and the time of judging them does not decide who counts. The authors' program (NVlabs/FedFomo,
fe04f66) begins, as its README sets it, from the model before the last training, and divides by the sum of the absolute
differences instead of the length.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import (
    SERVER,
    ClientRows,
    Context,
    Memory,
    Range,
    Trained,
    Uploads,
    distances_to,
    finite,
    mix_rows,
    restore_rows,
    store_rows,
)
from fedexp.parts.local.heavy_ball import HeavyBall


def first_order_weights(own_loss: np.ndarray, losses: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The weights p_ij `[C, R]` of R models for C clients, given `own_loss [C]`, `losses [C, R]`, `distance [C, R]`.

    A line of zeros where no loss is lower than the own one. What is not a number, or at distance 0, has no weight.
    """
    with np.errstate(invalid="ignore"):  # of infinite losses, which have no weight
        gain = np.nan_to_num(own_loss[:, None] - losses, nan=0.0, posinf=0.0, neginf=0.0).clip(min=0)
    weight = np.divide(gain, distance, out=np.zeros_like(gain), where=distance > 0)
    total = weight.sum(axis=1, keepdims=True)
    return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)


def mixed_models(models: torch.Tensor, owner: np.ndarray, sent: ClientRows, ctx: Context) -> torch.Tensor:
    """What clients with these own `models [C, D]` start from, `[C, D]`, if those in `sent` are sent to them."""
    holder, parameters, judge = sent.owner.numpy(), ctx.layout.parameters, ctx.clients_data.judge
    own_loss = [judge(model[None], client, client)[0, 0] for model, client in zip(models, owner[:, None], strict=True)]
    losses = np.where(holder == owner[:, None], np.nan, judge(sent.rows, holder, owner))
    distance = [distances_to(sent.rows[:, :parameters], model[:parameters]).cpu().numpy() for model in models]
    weight = first_order_weights(np.array(own_loss), losses, np.stack(distance))
    mix = np.concatenate([np.diag(weight.sum(axis=1) == 0), weight], axis=1)
    return mix_rows(torch.from_numpy(mix).to(models.device), torch.cat([models, sent.rows]))


class FedFomo(HeavyBall):
    """SGD from a mixture of the client's own model and others that do better on its held-out examples."""

    keeps_rows = True
    is_gradient_sum = False

    judging_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.2

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        start, width = self.client_models(owner, received, memory), received.shape[1]
        sent = ClientRows.load(memory.get("sent", {}), width, received)
        judges = np.flatnonzero(np.isin(owner, ClientRows.load(memory, width, received).owner.numpy()))
        if len(judges) and len(sent.owner):
            chosen = torch.from_numpy(judges).to(start.device)
            start = start.index_copy(0, chosen, mixed_models(start[chosen], owner[judges], sent, ctx))
        return start, start[:, : ctx.layout.parameters]

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        rows = store_rows(memory, trained, trained.rows)  # before delta(), which overwrites the rows
        return trained.delta(), memory | rows

    def receive(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        clients = uploads.where(uploads.owner != SERVER)
        rows = ctx.models[0].flat + clients.delta
        before = ClientRows.load(memory.get("sent", {}), rows.shape[1], rows)
        return memory | {"sent": before.with_valid_rows(clients.owner, rows, finite(rows)).save()}

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        return restore_rows(memory, owner, rows)
