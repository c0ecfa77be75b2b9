"""What the selectors that learn Shapley values share: the values of a round, and their running mean per client.

Players are the participants whose updates arrived and are finite; an update that the server drops changes nothing, so
its client's value of the round is 0. Coalitions are averaged with the aggregator's own weights.
Legend: N clients, C uploads, M players, R coalitions.
"""

import time
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.core.values import Memory, Uploads, finite
from fedexp.maths.shapley.estimate import EXACT_AT_MOST, Shapley
from fedexp.parts.context import Context
from fedexp.parts.selector.contract import Selector


def coalition_mix(members: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Rows that average the players of each coalition: `[R, 1 + M]` over (the model before, each player's model).

    `members` is bool `[R, M]`, `share [M]` what each counts; a coalition without weight keeps the model before.
    """
    weight = members * share
    total = weight.sum(axis=1, keepdims=True)
    some = total > 0
    return np.concatenate([~some, np.divide(weight, total, out=np.zeros_like(weight), where=some)], axis=1)


def round_values(shapley: Shapley, uploads: Uploads, ctx: Context) -> tuple[np.ndarray, dict[str, Any]]:
    """Shapley values of the uploads, float64 [C], and what to record of how they were found."""
    begun = time.perf_counter()
    usable = (uploads.owner >= 0) & finite(uploads.delta)
    players = uploads.where(usable)
    before = ctx.models[0].flat
    rows, share = torch.cat([before[None], before + players.delta]), ctx.shares(players)
    found = shapley.estimate(
        len(players.owner),
        lambda members: -ctx.mixture_losses(coalition_mix(members, share), rows),
        ctx.rng("shapley"),
    )
    values = np.zeros(len(uploads.owner))
    values[usable] = found.values
    return values, {
        "method": found.method,
        "coalitions": found.coalitions,
        "converged": int(found.converged),
        "error": found.error,
        "shapley_s": time.perf_counter() - begun,
    }


def running_mean(memory: Memory, clients: int, owner: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N_k += 1 and SV_k <- ((N_k - 1) SV_k + value) / N_k for these clients: new means and counts, each [N]."""
    mean, count = means_and_counts(memory, clients)
    mean, count = mean.copy(), count.copy()
    count[owner] += 1
    mean[owner] += (values - mean[owner]) / count[owner]
    return mean, count


def means_and_counts(memory: Memory, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean Shapley value and number of participations of every client, each [N]; zeros at the start."""
    if "mean" not in memory:
        return np.zeros(clients), np.zeros(clients, dtype=np.int64)
    return memory["mean"].numpy(), memory["count"].numpy()


@dataclass(frozen=True, kw_only=True)
class ShapleySelector(Selector):
    """Remembers the mean Shapley value of every client: `mean [N]`, `count [N]`."""

    count: Annotated[int, Range(1)]
    shapley: Shapley

    needs_validation = True
    averages_models = True
    needs_one_model = "averages uploads with one global model"

    def check(self) -> None:
        if self.shapley.method == "exact" and self.count > EXACT_AT_MOST:
            raise ConfigError(
                f"{type(self).__name__}.count must be at most {EXACT_AT_MOST} with shapley.method=exact, which takes "
                f"2^count models, got {self.count}; use shapley.method=auto"
            )

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        values, columns = round_values(self.shapley, uploads, ctx)
        clients = uploads.owner >= 0
        mean, count = running_mean(memory, ctx.clients, uploads.owner[clients], values[clients])
        return {**memory, "mean": torch.from_numpy(mean), "count": torch.from_numpy(count), "columns": columns}
