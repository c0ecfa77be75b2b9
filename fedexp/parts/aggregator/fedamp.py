"""FedAMP, federated attentive message passing (Huang et al. 2021, arXiv 2007.03797, algorithm 1).

The server keeps the model w_i that each client i trained last. A participant starts from u_i = (1 - sum_j xi_ij) w_i +
sum_j xi_ij w_j, over the other clients j, with xi_ij = alpha A'(|w_i - w_j|^2) and A(x) = 1 - exp(-x / sigma). That is
a step down the gradient of sum_j A(|w_i - w_j|^2), whose factor 2 is in alpha: near models are drawn together most.
Then it minimises F_i(w) + lambda / (2 alpha) |w - u_i|^2, which is `local=prox` with mu = lambda / alpha, as in
`algorithm=fedamp`. What it uses is its own w_i. alpha = 0: every client alone. Distances are those of trainable
entries.

`own_weight` is the mean of 1 - sum_j xi_ij over the participants. At 1 nobody is drawn anywhere, since sigma is too
small for the squared distances of these models; below 0 the step is too long.

Reading: in the paper all clients take part in each round. Here the others are those that were ever heard of, and a
client that was not starts from their mean, the global model. That mean is otherwise only measured.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import (
    SERVER,
    Aggregator,
    ClientRows,
    Context,
    Memory,
    Positive,
    Range,
    Uploads,
    Weights,
    distances_to,
    finite,
    mix_rows,
    positions_of,
    restore_rows,
)


def attention(distance: np.ndarray, position: np.ndarray, alpha: float, sigma: float) -> np.ndarray:
    """The weights `[C, n]` of n models in the starts of C of them, which are those at `position [C]`.

    `distance [C, n]` is from each of the C to all; each line sums to one.
    """
    weight = alpha / sigma * np.exp(-np.square(distance) / sigma)
    lines = np.arange(len(position))
    weight[lines, position] = 0
    weight[lines, position] = 1 - weight.sum(axis=1)
    return weight


class FedAMP(Aggregator):
    """Remembers a row of every client, and starts each from a mixture of its own and others like it."""

    keeps_rows = True
    own_starts = True
    needs_cohort = "adds what each client sends to the mixture of models that it was sent in the same step"

    weighting: Literal["uniform"] = "uniform"

    alpha: Annotated[float, Range(0)] = 1.0
    sigma: Annotated[float, Positive] = 10.0

    def dispatch(self, weights: Weights, owner: np.ndarray, memory: Memory) -> torch.Tensor:
        return self._starts(weights, owner, load_rows(weights, memory))[0]

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        return restore_rows(memory, owner, rows)

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        uploads, before = uploads.where(uploads.owner != SERVER), load_rows(weights, memory)
        starts, own_weight = self._starts(weights, uploads.owner, before)
        rows = starts + uploads.delta
        after = before.with_valid_rows(uploads.owner, rows, finite(rows))
        columns = {"heard": len(after.owner), "own_weight": float(own_weight.mean()) if len(own_weight) else None}
        if not len(after.owner):
            return weights, after.save() | {"columns": columns}
        share = torch.full((1, len(after.rows)), 1 / len(after.rows), dtype=torch.float64, device=rows.device)
        return Weights(mix_rows(share, after.rows)[0], weights.layout), after.save() | {"columns": columns}

    def _starts(self, weights: Weights, owner: np.ndarray, before: ClientRows) -> tuple[torch.Tensor, np.ndarray]:
        """What participants start from, `[C, D]`, and the weight of its own model for each of them heard of before."""
        starts, heard = weights.flat.expand(len(owner), -1), np.flatnonzero(np.isin(owner, before.owner.numpy()))
        if not len(heard):
            return starts, np.zeros(0)
        position = positions_of(owner[heard], before.owner.numpy())
        trainable = before.rows[:, : weights.layout.parameters]
        distance = np.stack([distances_to(trainable, trainable[index]).cpu().numpy() for index in position.tolist()])
        weight = attention(distance, position, self.alpha, self.sigma)
        mixed = mix_rows(torch.from_numpy(weight).to(starts.device), before.rows)
        rows = starts.index_copy(0, torch.from_numpy(heard).to(starts.device), mixed)
        return rows, weight[np.arange(len(heard)), position]


def load_rows(weights: Weights, memory: Memory) -> ClientRows:
    """The last models of the clients that a memory holds."""
    return ClientRows.load(memory, len(weights.flat), weights.flat)
