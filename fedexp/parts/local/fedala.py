"""FedALA, adaptive local aggregation (Zhang et al. 2023, arXiv 2212.01197): clients mix models before they train.

Client i keeps the model w_i that it trained last and weights A, one for each entry of its last `top_layers` layers. A
participant that receives w starts from w_hat = w_i + (w - w_i) * A there, and from w in the layers below. Before that
it learns A on a random `sample` of its examples, batch by batch: A <- A - eta (w - w_i) * grad F_i(w_hat), cut off at 0
and 1, which moves w_hat along. Then it trains w_hat as in FedAvg and sends all of it. These are equations 1 and 2 of
the authors' poster. A begins at 1 and is kept. A client first learns it until it converges, later for one epoch a
round: it has converged when the losses of the last ten epochs deviate by less than `tolerance` (0.1 in the authors'
code, whose README says that the paper had 0.01), and after `start_epochs` it stops anyway. Where w equals w_i, or there
is no w_i, nothing is mixed and nothing learned. eta = 0 is FedAvg, and so is top_layers = 0.

What a client uses is w_hat of its w_i and the present global model: as the authors' code measures it, but with the A
that it learned last. The clock counts one epoch of A a round. Dropout draws in every epoch what it draws in the first.

Deviations from the authors' code (github.com/TsingZ0/FedALA): its sample is a run of neighbours, its batches keep their
order, and it looks at the last batch's loss of each epoch, here at the epoch's mean. It mixes at those who do not train
in a round, too, without an end if the losses never settle. It counts weights and biases one by one: `-p 2` is
top_layers = 1, and `-p 0` is all, here null. A that is no longer finite stays as it was.

Legend: C participants, D entries of a model, A weights, n clients that learn.
"""

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from fedexp.parts import (
    ClientRows,
    ConfigError,
    Context,
    Facts,
    Layout,
    LocalRule,
    Memory,
    Model,
    Plan,
    Range,
    Trained,
    option,
    readable_network,
    restore_rows,
    select_rows,
)
from fedexp.parts.local.heavy_ball import HeavyBall

WINDOW = 10  # epochs whose losses are compared


def mix(weights: torch.Tensor, local: torch.Tensor, received: torch.Tensor) -> torch.Tensor:
    """w_hat `[..., D]` of `local` and `received [..., D]` and `weights [..., A]` of the last entries."""
    cut = received.shape[-1] - weights.shape[-1]
    # exactly the local entries at 0, and the received ones at 1
    top = torch.lerp(local[..., cut:], received[..., cut:], weights)
    return torch.cat([received[..., :cut], top], dim=-1)


def layer_sizes(layout: Layout) -> dict[str, int]:
    """How many trainable entries each layer has, by name, from the first to the last."""
    sizes: dict[str, int] = {}
    for name, size in zip(layout.names[: layout.trainable], layout.sizes, strict=False):
        layer = name.rpartition(".")[0]
        sizes[layer] = sizes.get(layer, 0) + size
    return sizes


def has_settled(losses: list[np.ndarray], tolerance: float) -> np.ndarray:
    """Of which clients the `losses` of all epochs, `[n]` each, have converged, bool [n]; also what is no number."""
    if len(losses) <= WINDOW:
        return np.zeros(len(losses[0]), dtype=bool)
    return ~(np.std(losses[-WINDOW:], axis=0) >= tolerance)


class MixedNetwork(nn.Module):
    """A network of the received entries, which answers by w_hat: rows are `[weights | received | local]`."""

    def __init__(self, network: nn.Module, weights: int) -> None:
        super().__init__()
        self.received, self.layout = network, Layout.of(network)
        self.weights = nn.Parameter(self.layout.flatten(network).new_ones(weights))
        self.register_buffer("local", self.layout.flatten(network))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The answers to `x [B, *shape]`; their gradient reaches the weights alone."""
        received = torch.cat([entry.detach().reshape(-1) for entry in self.received.parameters()])
        mixed = mix(self.weights, self.get_buffer("local"), received)
        return functional_call(self.received, self.layout.views(mixed), (x,))


class AggregationWeights(LocalRule):
    """How A is learned, in rows of the `MixedNetwork`: projected steps of the rate `eta`; the models in them stay."""

    eta: Annotated[float, Range(0)] = 1.0
    top_layers: Annotated[int, Range(0)] | None = 1

    def wrap_network(self, network: nn.Module) -> nn.Module:
        return MixedNetwork(network, self.weights(Layout.of(network)))

    def weights(self, layout: Layout) -> int:
        """How many entries of a model have a weight."""
        sizes = list(layer_sizes(layout).values())
        return sum(sizes if self.top_layers is None else sizes[len(sizes) - self.top_layers :])

    def extend_rows(self, rows: torch.Tensor, layout: Layout) -> torch.Tensor:
        return torch.cat([rows.new_ones((len(rows), self.weights(layout))), rows, rows], dim=1)

    def phase_columns(self, layout: Layout) -> np.ndarray:
        return np.arange(layout.sizes[0], layout.parameters)  # all but the weights, and no step is of their phase

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        moved = (w - self.eta * grad).clamp(0, 1)
        w.copy_(moved if active is None else select_rows(active, moved, w))


class FedALA(HeavyBall):
    """SGD from a mixture, entry by entry, of the client's last model and the received one."""

    keeps_rows = True
    is_gradient_sum = False
    starts_from_examples = True

    eta: Annotated[float, Range(0)] = 1.0
    sample: Annotated[float, Range(0, 1, low_open=True)] = 0.8
    top_layers: Annotated[int, Range(0)] | None = 1
    tolerance: Annotated[float, Range(0)] = 0.1
    start_epochs: Annotated[int, Range(1)] = 100

    @property
    def weight_rule(self) -> AggregationWeights:
        """The rule by which A is learned, an epoch at a time."""
        return replace(self.settings_as(AggregationWeights), epochs=1, steps=None, drop_last=False, clip_norm=None)

    @property
    def slots(self) -> int:
        return super().slots + 1

    @property
    def finish_needs_slot(self) -> bool:
        return True

    def passes(self, examples: np.ndarray) -> np.ndarray:
        return super().passes(examples) + self.sample * (self.top_layers != 0)

    def refuse(self, model: Model, facts: Facts) -> None:
        layout = Layout.of(readable_network(model, facts))
        if layout.size > layout.parameters:
            raise ConfigError(
                f"local={option(self)} mixes two models entry by entry, but model={option(model)} has layers that keep "
                "statistics of their answers; use model.norm=group or a model without them"
            )
        layers = layer_sizes(layout)
        if self.top_layers is not None and self.top_layers > len(layers):
            raise ConfigError(
                f"local.top_layers must be at most {len(layers)}, the number of layers of model={option(model)} "
                f"({', '.join(layers)}), got {self.top_layers}; null is all of them"
            )

    def fill(self, slots: torch.Tensor, anchor: torch.Tensor) -> None:
        slots.zero_()
        slots[-1].copy_(anchor)  # which carries A to the end of the training, where it is stored

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        local, count = restore_rows(memory, owner, received), self.weight_rule.weights(ctx.layout)
        learned = ClientRows.load(memory.get("weights", {}), count, received)
        weights = learned.restore(owner, received.new_ones((len(owner), count)), slice(None))
        learners = np.flatnonzero(differs(local, received)) if count else np.zeros(0, np.int64)
        if not len(learners):
            return received, torch.cat([received[:, count:], weights], dim=1)
        chosen = torch.from_numpy(learners).to(received.device)
        rows = torch.cat([weights[chosen], received[chosen], local[chosen]], dim=1)
        is_start = ~np.isin(owner[learners], learned.owner.numpy())
        weights = weights.index_copy(0, chosen, self.learn(rows, owner[learners], is_start, ctx)[:, :count])
        return mix(weights, local, received), torch.cat([received[:, count:], weights], dim=1)

    def learn(self, rows: torch.Tensor, owner: np.ndarray, is_start: np.ndarray, ctx: Context) -> torch.Tensor:
        """The `rows [n, A + 2 D]` after these clients learned A: for an epoch, or where `is_start [n]` as it takes."""
        plan, before, rows = draw_samples(owner, self.sample, ctx), rows, rows.clone()
        learners, losses = np.arange(len(owner)), []
        for epoch in range(self.start_epochs):
            positions = torch.from_numpy(learners).to(rows.device)
            rows[positions], epoch_losses = ctx.clients_data.train_wrapped(
                self.weight_rule, rows[positions], plan.where(learners), "aggregation_weights", epoch
            )
            losses.append(np.full(len(owner), np.nan))
            losses[-1][learners] = epoch_losses
            learners = np.flatnonzero(is_start & ~has_settled(losses, self.tolerance))
            if not len(learners):
                break
        return torch.where(rows.isfinite().all(dim=1, keepdim=True), rows, before)

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        assert trained.slot is not None
        count, valid = self.weight_rule.weights(ctx.layout), trained.valid_rows()
        received = trained.received_matrix
        has_learned = valid & differs(restore_rows(memory, trained.owner, received), received)
        weights = trained.slot[:, trained.slot.shape[1] - count :]
        learned = ClientRows.load(memory.get("weights", {}), count, weights)
        learned = learned.with_valid_rows(trained.owner, weights, has_learned)
        local = ClientRows.load(memory, trained.rows.shape[1], trained.rows)
        local = local.with_valid_rows(trained.owner, trained.rows, valid)
        return trained.delta(), local.save() | {"weights": learned.save()}

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        learned = memory.get("weights", {})
        count = learned["rows"].shape[1] if learned else 0
        start = rows.new_ones((len(owner), count))
        weights = ClientRows.load(learned, count, rows).restore(owner, start, slice(None))
        return mix(weights, restore_rows(memory, owner, rows), rows)


def differs(local: torch.Tensor, received: torch.Tensor) -> np.ndarray:
    """Which of the clients' models differ from what they received, both `[C, D]`, bool [C]."""
    return (local != received).any(dim=1).cpu().numpy()


def draw_samples(owner: np.ndarray, fraction: float, ctx: Context) -> Plan:
    """A random part of the examples of the clients `owner [n]`: that fraction, rounded down, but at least one."""
    samples = []
    for client, shard in zip(owner.tolist(), ctx.plan(owner).shards, strict=True):
        size = max(1, math.floor(fraction * len(shard) + 1e-9))
        positions = ctx.rng("aggregation_sample", client).permutation(len(shard))[:size]
        samples.append(shard[np.sort(positions)])
    return Plan(owner, tuple(samples))
