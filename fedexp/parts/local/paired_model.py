"""Companions that train together with the model that is sent, since theirs is made of both.

A client has private entries; a function combines them with the entries w of the shared network to those of the
model that it uses. In each step w descends the cost of its own answers, as it does in the model that is sent, and the
client's entries descend the cost of the combined model's answers, whose gradient does not reach w. Dropout draws other
units in the second pass. A promise of privacy covers what is sent: companions are trained without noise.

Legend: B batch, D entries of the model, P trainable ones, O private ones.
"""

from abc import abstractmethod

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
    Loss,
    Memory,
    Model,
    ModelOutputs,
    Trained,
    option,
    readable_network,
    store_rows,
)
from fedexp.parts.local.heavy_ball import HeavyBall


class PairedNetwork(nn.Module):
    """A network with a client's `private [O]` entries beside it; it answers twice, `[B, 2, *outputs]`."""

    def __init__(self, network: nn.Module, companion: "PairedCompanion") -> None:
        super().__init__()
        self.shared, self.companion, self.layout = network, companion, Layout.of(network)
        first = self.layout.flatten(network)
        self.private = nn.Parameter(companion.first_private(first, self.layout))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The answers `[B, 2, *outputs]` to `x [B, *shape]`: of the shared network, and of the combined one."""
        shared = torch.cat([entry.detach().reshape(-1) for entry in self.shared.parameters()])
        combined = self.companion.combine(self.private, shared, self.layout)
        return torch.stack([self.shared(x), functional_call(self.shared, self.layout.views(combined), (x,))], dim=1)


class PairedCompanion(HeavyBall):
    """SGD on the shared entries and on the client's own, in rows `[private | shared]`. Only networks without buffers.

    A client keeps its own entries, and the combined ones as they were when it was last asked: `[O + D]`.
    """

    keeps_rows = True

    @abstractmethod
    def first_private(self, first: torch.Tensor, layout: Layout) -> torch.Tensor:
        """The entries `[..., O]` of a client's own before its first training, given the first model's `[..., P]`."""
        raise NotImplementedError

    @abstractmethod
    def combine(self, private: torch.Tensor, shared: torch.Tensor, layout: Layout) -> torch.Tensor:
        """The trainable entries `[..., P]` of the client's model, of `private [..., O]` and `shared [..., P]`."""
        raise NotImplementedError

    def shared_cost(
        self, loss: Loss, outputs: torch.Tensor, targets: torch.Tensor, counts: torch.Tensor | None
    ) -> torch.Tensor:
        """What an example costs the shared network, `[B]`: what it does in the model that is sent."""
        return loss.per_example(outputs, targets)

    def wrap_network(self, network: nn.Module) -> nn.Module:
        return PairedNetwork(network, self)

    def extend_rows(self, rows: torch.Tensor, layout: Layout) -> torch.Tensor:
        return torch.cat([self.first_private(rows, layout), rows], dim=1)

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        columns, rows = slice(0, ctx.layout.sizes[0]), ClientRows.load(memory, ctx.layout.size, received)
        start = received.clone()
        start[:, columns] = ctx.first.flat[columns]
        start = ClientRows(rows.owner, rows.rows[:, columns]).restore(owner, start, columns)
        return start, start

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        shared, combined = own_outputs.outputs.unbind(dim=1)
        return self.shared_cost(loss, shared, targets, counts) + loss.per_example(combined, targets)

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        private, shared = trained.rows.split([ctx.layout.sizes[0], ctx.layout.size - ctx.layout.sizes[0]], dim=1)
        combined = self.combine(private, shared, shared_layout(ctx.layout))
        return trained.rows, store_rows(memory, trained, torch.cat([private, combined], dim=1))

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        stored = ClientRows.load(memory, rows.shape[1], rows)
        return ClientRows(stored.owner, stored.rows[:, -rows.shape[1] :]).restore(owner, rows, slice(None))


def shared_layout(layout: Layout) -> Layout:
    """The layout of the shared network, given that of the pair."""
    names = tuple(name.removeprefix("shared.") for name in layout.names[1:])
    return Layout(names, layout.shapes[1:], layout.trainable - 1)


def refuse_pairs(rule: HeavyBall, model: Model, facts: Facts) -> None:
    """Raises ConfigError for a network with entries that are not trained, of which there would be two sets.

    Also where gradients are clipped: those of both models would be shortened as one.
    """
    if rule.clip_norm is not None:
        raise ConfigError(
            f"local.clip_norm={rule.clip_norm:g} would shorten the gradients of both models of local={option(rule)} as "
            "one; use local.clip_norm=null"
        )
    layout = Layout.of(readable_network(model, facts))
    if layout.size > layout.parameters:
        raise ConfigError(
            f"local={option(rule)} asks a network twice in each step, but model={option(model)} has layers that keep "
            "statistics of their answers; use model.norm=group or a model without them"
        )
