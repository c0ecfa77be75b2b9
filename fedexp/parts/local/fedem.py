"""FedEM's clients (Marfoq et al. 2021, arXiv 2108.10252): each mixes the same M components by shares of its own.

A client has shares pi_m that sum to one, 1 / M at first, and predicts sum_m pi_m softmax(h_m(x)). Once it received the
components it weighs them for each of its examples, q_i(m) proportional to pi_m exp(-loss(h_m(x_i), y_i)), and sets
pi_m to the mean of q_i(m). Then each component descends sum_i q_i(m) loss(h_m(x_i), y_i), in which the q of the round
stay as they are. The components are sent and averaged; shares and q never leave the client. M = 1 is FedAvg.

In the global model the shares stay equal, so its accuracy on test data says little of what clients use:
`evaluation.personal_fraction` measures that. A client that was never asked uses equal shares. A training that is not
finite leaves its shares as they were.

Deviations from the authors' program (https://github.com/omarfoq/FedEM): there each component goes through batches of
its own order, here all take their steps on the same ones; there all clients are averaged, those too that were not asked
and hold what they received last; there clients that never train weigh the components once before they are measured;
there momentum is always 0.9, and goes on from round to round, and weight decay 0.0005. No share falls below 1e-30.
Where examples are augmented, q is that of the augmented example, but pi that of the plain ones. Smoothing, class
weights and the power of generalized cross-entropy are part of what components descend, but not of q. To be asked what
each component says the mixture is evaluated M times; the simulated clock counts neither this nor the received model's
answers.
Legend: B batch, C participants, M components, K classes, n examples.
"""

import numpy as np
import torch

from fedexp.parts import (
    ConfigError,
    Context,
    Facts,
    Layout,
    Loss,
    Memory,
    Mixing,
    Model,
    ModelOutputs,
    Plan,
    Weights,
    option,
    readable_network,
)
from fedexp.parts.local.heavy_ball import HeavyBall

SMALLEST = 1e-30  # share, so that its logarithm is a number
NOTHING = -1e30  # as the logarithm of a share: the component has no part in the answer


def responsibilities(parts: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The weights q `[B, M]` of examples of the classes `targets [B]`, given log pi_m + log p_m `[B, M, K]`."""
    index = targets[:, None, None].expand(-1, parts.shape[1], 1)
    return parts.gather(2, index)[..., 0].softmax(dim=1)


def updated_log_shares(log_shares: torch.Tensor, losses: torch.Tensor) -> torch.Tensor:
    """The logarithms `[M]` of a client's new shares, given those before, and its examples' `losses [n, M]`."""
    if not len(losses):
        return log_shares
    return (log_shares - losses).softmax(dim=1).mean(dim=0).clamp(min=SMALLEST).log()


def component_losses(rows: torch.Tensor, plan: Plan, shares: torch.Tensor, ctx: Context) -> list[torch.Tensor]:
    """The losses `[n, M]` of each client's examples, for the components in `rows [C, D]` with these share columns."""
    rows = rows.index_fill(1, shares, NOTHING)
    is_same = bool((rows == rows[:1]).all())
    groups = [np.arange(len(rows))] if is_same else np.arange(len(rows))[:, None]
    losses: list[torch.Tensor] = []
    for group in groups:
        index = np.concatenate([*(plan.shards[position] for position in group), np.zeros(0, np.int64)])
        columns = []
        for column in shares:
            alone = Weights(rows[group[0]].index_fill(0, column, 0.0), ctx.layout)
            columns.append(torch.from_numpy(ctx.audit.example_losses(alone, index)))
        losses += torch.stack(columns, dim=1).split(plan.sizes[group].tolist())
    return losses


class FedEM(HeavyBall):
    """SGD on all components, each on the examples that it is responsible for."""

    keeps_rows = True
    compares = ("received",)
    reads_class_targets = True
    needs_log_likelihood = True

    def refuse(self, model: Model, facts: Facts) -> None:
        if Mixing.shares not in Layout.of(readable_network(model, facts)).names:
            raise ConfigError(
                f"local=fedem trains the components of a mixture, but model={option(model)} is none; use model=mixture "
                f"model@model.component={option(model)}"
            )

    def private_columns(self, layout: Layout) -> np.ndarray:
        return layout.columns((Mixing.shares,))

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        shares = torch.from_numpy(self.private_columns(ctx.layout)).to(received.device)
        start = received.clone()
        if len(owner):
            losses = component_losses(received, ctx.plan(owner), shares, ctx)
            pairs = zip(received[:, shares].cpu().double(), losses, strict=True)
            start[:, shares] = torch.stack([updated_log_shares(*pair) for pair in pairs]).to(received)
        return start, start[:, : ctx.layout.parameters]

    def reference_models(self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context) -> torch.Tensor:
        return received.unsqueeze(0)

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        weight = responsibilities(reference_outputs[0].features, targets)
        answers = own_outputs.features.flatten(0, 1)  # a softmax of them has no share in it
        losses = loss.per_example(answers, targets.repeat_interleave(weight.shape[1]))
        return (weight * losses.view(weight.shape)).sum(dim=1)
