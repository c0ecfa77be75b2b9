"""IFCA (Ghosh et al. 2020, arXiv 2006.04088, algorithm 1, model averaging): participants choose clusters each round.

A participant receives all models and takes the one with the lowest loss on its own data (at ties the first). The paper
starts several times from random models; here they lie around the server's first model. Every participant receives
`count` models and sends one back: `clustering.mb` is the part of mb_down for all but the first.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from fedexp.core.part import Positive, Range
from fedexp.core.values import Memory, Plan, Uploads, Weights
from fedexp.parts.clustering.agreement import adjusted_rand
from fedexp.parts.clustering.contract import Clustering, Event, Models, mean_of_clusters
from fedexp.parts.context import Context


@dataclass(frozen=True, kw_only=True)
class IFCA(Clustering):
    """Keeps `count` clusters from the first round on."""

    divides = True
    reveals = "which model fits each client best"

    count: Annotated[int, Range(1)]
    spread: Annotated[float, Positive] = 0.5

    def assign(
        self, models: Models, plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[Models, Plan, np.ndarray, Memory]:
        if len(models) == 1:
            models = (*models, *self._around(models[0], ctx))
        losses = np.stack([ctx.survey.losses_of(weights, plan) for weights in models[1:]])
        cluster = 1 + np.nan_to_num(losses, nan=np.inf, posinf=np.inf).argmin(axis=0)
        before = self.model_of(plan.owner, memory)
        events: list[Event] = []
        for client, own, old in zip(plan.owner.tolist(), cluster.tolist(), before.tolist(), strict=True):
            if own != old:
                events += [(ctx.round, "leave", client, old, None)] if old else []
                events += [(ctx.round, "join", client, own, None)]
            events.append((ctx.round, "model", client, own, None))
        known = {int(client): int(own) for client, own in memory.get("members", {}).items()}
        known |= dict(zip(plan.owner.tolist(), cluster.tolist(), strict=True))
        return (
            models,
            plan,
            cluster,
            {"members": {str(client): known[client] for client in sorted(known)}, "events": tuple(events)},
        )

    def regroup(self, models: Models, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Models, Memory]:
        owner = np.array([int(client) for client in memory["members"]], dtype=np.int64)
        cluster = np.array(list(memory["members"].values()), dtype=np.int64)
        sizes = np.bincount(cluster, minlength=self.count + 1)[1:]
        examples = np.bincount(cluster, weights=ctx.sizes[owner], minlength=self.count + 1)[1:]
        asked = sum(what == "model" for _, what, *_ in memory["events"])
        columns = {
            "clusters": int((sizes > 0).sum()),
            "largest": int(sizes.max(initial=0)),
            "messages": (self.count + 1) * asked,
            "mb": (self.count - 1) * asked * ctx.traffic.megabytes,
            "agreement": adjusted_rand(ctx.survey.groups(owner), cluster),
        }
        return (mean_of_clusters(models, examples), *models[1:]), memory | {"columns": columns}

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        members = memory.get("members", {})
        return np.array([members.get(str(client), 0) for client in owner.tolist()], dtype=np.int64)

    def _around(self, first: Weights, ctx: Context) -> list[Weights]:
        scale = self.spread * float(first.flat[: ctx.layout.parameters].square().mean().sqrt())
        begun = []
        for number in range(self.count):
            draw = ctx.run_rng("ifca", number).standard_normal(ctx.layout.parameters, dtype=np.float32)
            draw[ctx.traffic.unsent[ctx.traffic.unsent < ctx.layout.parameters]] = 0
            row = first.flat.clone()
            row[: ctx.layout.parameters] += scale * torch.from_numpy(draw).to(row)
            begun.append(Weights(row, first.layout))
        return begun
