"""IFCA (Ghosh et al. 2020, arXiv 2006.04088, algorithm 1, model averaging): participants choose clusters each round.

A participant receives all models and takes the one with the lowest loss on its own data (at ties the first). The paper
starts several times from random models; here they lie around the server's first model. Every participant receives
`count` models and sends one back: `clustering.mb` is the part of mb_down for all but the first.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.core.part import Positive, Range
from fedexp.core.values import Memory, Plan, Uploads, Weights
from fedexp.parts.clustering.agreement import adjusted_rand
from fedexp.parts.clustering.contract import Clustering, Event, Models, mean_of_clusters
from fedexp.parts.context import Context


class IFCA(Clustering):
    """Keeps `count` clusters from the first round on."""

    has_clusters = True
    reveals = "which model fits each client best"

    count: Annotated[int, Range(1)]
    spread: Annotated[float, Positive] = 0.5

    def assign(
        self, models: Models, plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[Models, Plan, np.ndarray, Memory]:
        if len(models) == 1:
            models = (*models, *self._perturbed_models(models[0], ctx))
        losses = np.stack([ctx.clients_data.losses_of(weights, plan) for weights in models[1:]])
        cluster = 1 + np.nan_to_num(losses, nan=np.inf, posinf=np.inf).argmin(axis=0)
        before = self.model_of(plan.owner, memory)
        events: list[Event] = []
        for client, choice, old in zip(plan.owner.tolist(), cluster.tolist(), before.tolist(), strict=True):
            if choice != old:
                events += [(ctx.round, "leave", client, old, None)] if old else []
                events += [(ctx.round, "join", client, choice, None)]
            events.append((ctx.round, "model", client, choice, None))
        members = {int(client): int(choice) for client, choice in memory.get("members", {}).items()}
        members |= dict(zip(plan.owner.tolist(), cluster.tolist(), strict=True))
        new_memory = {"members": {str(client): members[client] for client in sorted(members)}, "events": tuple(events)}
        return models, plan, cluster, new_memory

    def regroup(self, models: Models, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Models, Memory]:
        owner = np.array([int(client) for client in memory["members"]], dtype=np.int64)
        cluster = np.array(list(memory["members"].values()), dtype=np.int64)
        sizes = np.bincount(cluster, minlength=self.count + 1)[1:]
        examples = np.bincount(cluster, weights=ctx.sizes[owner], minlength=self.count + 1)[1:]
        participants = sum(kind == "model" for _, kind, *_ in memory["events"])
        columns = {
            "clusters": int((sizes > 0).sum()),
            "largest": int(sizes.max(initial=0)),
            "messages": (self.count + 1) * participants,
            "mb": (self.count - 1) * participants * ctx.traffic.megabytes,
            "agreement": adjusted_rand(ctx.clients_data.groups(owner), cluster),
        }
        return (mean_of_clusters(models, examples), *models[1:]), memory | {"columns": columns}

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        members = memory.get("members", {})
        return np.array([members.get(str(client), 0) for client in owner.tolist()], dtype=np.int64)

    def _perturbed_models(self, first: Weights, ctx: Context) -> list[Weights]:
        scale = self.spread * float(first.flat[: ctx.layout.parameters].square().mean().sqrt())
        starts = []
        for number in range(self.count):
            draw = ctx.run_rng("ifca", number).standard_normal(ctx.layout.parameters, dtype=np.float32)
            draw[ctx.traffic.private_columns[ctx.traffic.private_columns < ctx.layout.parameters]] = 0
            row = first.flat.clone()
            row[: ctx.layout.parameters] += scale * torch.from_numpy(draw).to(row)
            starts.append(Weights(row, first.layout))
        return starts
