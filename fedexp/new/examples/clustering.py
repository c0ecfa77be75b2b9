"""Which clients share a model: write here who belongs together.

As it stands, clients whose numbers leave the same remainder. Model 0 is the global one, on which everything else looks;
the clusters' own models come after it. `events` are the lines of clusters.csv.
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Clustering, Context, Memory, Plan, Range, Uploads, Weights


class OwnClustering(Clustering):
    """Client k is in cluster `1 + k % count`, from the first round on."""

    has_clusters = True

    count: Annotated[int, Range(1)] = 2

    def assign(
        self, models: tuple[Weights, ...], plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[tuple[Weights, ...], Plan, np.ndarray, Memory]:
        if ctx.round > 1:
            return models, plan, self.model_of(plan.owner, memory), {"events": ()}
        everybody = np.arange(ctx.clients)
        joined = zip(everybody.tolist(), self.model_of(everybody, memory).tolist(), strict=True)
        events = tuple((ctx.round, "join", client, cluster, None) for client, cluster in joined)
        return models[:1] * (1 + self.count), plan, self.model_of(plan.owner, memory), {"events": events}

    def regroup(
        self, models: tuple[Weights, ...], uploads: Uploads, memory: Memory, ctx: Context
    ) -> tuple[tuple[Weights, ...], Memory]:
        cluster = self.model_of(np.arange(ctx.clients), memory)
        examples = np.bincount(cluster, weights=ctx.sizes, minlength=len(models))[1:]
        rows = torch.stack([weights.flat for weights in models[1:]])
        mean = torch.from_numpy(examples / examples.sum()).to(rows) @ rows
        return (replace(models[0], flat=mean), *models[1:]), memory

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        return 1 + owner % self.count
