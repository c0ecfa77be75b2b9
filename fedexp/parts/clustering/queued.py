"""Clusters with a queue: newcomers are assigned to a cluster, wait until the round ends, and join after it.

A client that arrives in a round gets the server's model (the one before the first round), trains it on its own data
as in one round of its rule (or for `fine_tune_epochs`), and sends the result. The part then assigns it to a cluster,
perhaps a new one. The client waits in the queue of that cluster until the round is over, and trains from the next one
on. The clients that are there from the beginning pass through the same queue before round 1. With `admitted` at most
that many of each queue join after a round, and the others keep waiting.

A cluster starts with the server's model or, with `begins_with=founder`, with its first member's fine-tuned one. In each
round the selector proposes clients; of each cluster's members among them a random share `take` (rounded up) takes part.
The global model is the mean of the clusters' models by the examples of their members, or stays the server's.

`clustering.messages` counts the models that were sent, each down and up again; `clustering.mb` is the newcomers' part
of the traffic, half of it in mb_down and half in mb_up.
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import LARGEST, Range
from fedexp.core.values import Memory, Plan, Uploads, Weights
from fedexp.parts.clustering.agreement import adjusted_rand
from fedexp.parts.clustering.arrivals import arrived_by, scheduled
from fedexp.parts.clustering.contract import Clustering, Event, Models, mean_of_clusters
from fedexp.parts.clustering.membership import Membership
from fedexp.parts.context import Context


@dataclass(frozen=True)
class Placed:
    """Newcomers' clusters: `cluster [n]` from 1, `distance [n]`, and all clusters' new `references [M, D]`."""

    cluster: np.ndarray
    distance: np.ndarray
    references: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Queued(Clustering):
    """Arrivals, queue, joining, sampling within clusters, the global model; subclasses assign newcomers."""

    divides = True

    arrivals: tuple[str, ...] = ()
    rate: Annotated[float, Range(0, LARGEST)] = 0.0
    admitted: Annotated[int, Range(1)] | None = None
    fine_tune_epochs: Annotated[int, Range(1)] | None = None
    take: Annotated[float, Range(0, 1, low_open=True)] = 1.0
    begins_with: Literal["server", "founder"] = "server"
    global_model: Literal["clusters", "server"] = "clusters"

    def check(self) -> None:
        if scheduled(self.arrivals) and self.rate:
            raise ConfigError(
                f"{type(self).__name__}.arrivals must be [] where there is a rate of them, "
                f"got {list(self.arrivals)}; leave one out"
            )

    def refuse(self, clients: int | None) -> None:
        late = sum(scheduled(self.arrivals).values())
        if clients is not None and late > clients:
            raise ConfigError(
                f"clustering.arrivals must name at most the number of clients, {clients}, got {late}; name fewer"
            )

    @property
    def follows(self) -> bool:
        """Whether newcomers are compared with a cluster's own model, once it has trained one."""
        return False

    def place(self, rows: torch.Tensor, references: torch.Tensor, ctx: Context) -> Placed:
        """The clusters of newcomers with models `rows [n, D]`, given the present clusters' `references [M, D]`."""
        raise NotImplementedError

    def assign(
        self, models: Models, plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[Models, Plan, np.ndarray, Memory]:
        events: list[Event] = []
        if "references" not in memory:
            models, memory = self._welcome(models, memory, events, ctx, ctx.round - 1)
        there = Membership.load(memory)
        joining = there.ready(self.admitted)
        for place in joining.tolist():
            events.append((ctx.round, "join", int(there.waiting[place]), int(there.waits_for[place]), None))
        waited = ctx.round - there.since[joining]
        there = there.admitted(joining)
        cluster = there.of(plan.owner)
        chosen = self._drawn(cluster, ctx)
        plan, cluster = plan.where(chosen), cluster[chosen]
        events += [
            (ctx.round, "model", int(client), int(own), None) for client, own in zip(plan.owner, cluster, strict=True)
        ]
        kept = {"references": memory["references"], "events": tuple(events), "waited": tuple(waited.tolist())}
        return models, plan, cluster, there.save() | kept

    def regroup(self, models: Models, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Models, Memory]:
        references, events = memory["references"].clone(), list(memory["events"])
        for cluster in np.unique(uploads.model).tolist() if self.follows else ():
            references[cluster - 1] = models[cluster].flat
        models, memory = self._welcome(models, memory | {"references": references}, events, ctx, ctx.round)
        there = Membership.load(memory)
        sizes = there.sizes(len(models) - 1)
        waited, kinds = memory["waited"], Counter(what for _, what, *_ in events)
        columns = {
            "clusters": int((sizes > 0).sum()),
            "largest": int(sizes.max(initial=0)),
            "smallest": int(sizes[sizes > 0].min()) if sizes.any() else 0,
            "waiting": len(there.waiting),
            "queue_rounds": float(np.mean(waited)) if waited else None,
            "messages": 2 * (kinds["model"] + kinds["server_model"]),
            "mb": 2 * kinds["server_model"] * ctx.traffic.megabytes,
            "agreement": adjusted_rand(ctx.survey.groups(there.owner), there.cluster),
        }
        if self.global_model == "clusters":
            examples = np.bincount(there.cluster, weights=ctx.sizes[there.owner], minlength=len(models))[1:]
            models = (mean_of_clusters(models, examples), *models[1:])
        return models, memory | {"events": tuple(events), "columns": columns}

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        return Membership.load(memory).of(owner)

    def _welcome(
        self, models: Models, memory: Memory, events: list[Event], ctx: Context, number: int
    ) -> tuple[Models, Memory]:
        """Appends the clients that arrived in a round (0: before the first) to the queue, in the order of arrival."""
        first = ctx.first.flat
        references = memory.get("references", first.new_zeros((0, len(first))))
        newcomers, there = self._newcomers(ctx, number), Membership.load(memory)
        if len(newcomers) == 0:
            return models, memory | {"references": references}
        rows = ctx.survey.fine_tuned(first, newcomers, number, self.fine_tune_epochs)
        placed, known = self.place(rows, references, ctx), len(references)
        for client, cluster, distance in zip(
            newcomers.tolist(), placed.cluster.tolist(), placed.distance.tolist(), strict=True
        ):
            events.append((number, "server_model", client, 0, None))
            if cluster > known:
                known = cluster
                events.append((number, "birth", client, cluster, None))
            there = there.queued(client, cluster, number)
            events.append((number, "queue", client, cluster, distance if math.isfinite(distance) else None))
        born = placed.references[len(references) :]
        starts = born if self.begins_with == "founder" else first.expand(len(born), -1)
        models = (*models, *(Weights(row.clone(), ctx.layout) for row in starts))
        return models, memory | there.save() | {"references": placed.references}

    def _newcomers(self, ctx: Context, number: int) -> np.ndarray:
        counts = scheduled(self.arrivals)
        order = ctx.run_rng("arrivals").permutation(ctx.clients) if counts or self.rate else np.arange(ctx.clients)
        upto = [
            arrived_by(when, ctx.clients, counts, self.rate, ctx.run_rng("arrival_counts"))
            for when in (number - 1, number)
            if when >= 0
        ]
        return order[0 if number == 0 else upto[0] : upto[-1]]

    def _drawn(self, cluster: np.ndarray, ctx: Context) -> np.ndarray:
        """Positions of the clients drawn to take part, ascending, given each candidate's cluster (0: none)."""
        drawn = [np.zeros(0, dtype=np.int64)]
        for one in np.unique(cluster[cluster > 0]).tolist():
            members = np.flatnonzero(cluster == one)
            count = math.ceil(self.take * len(members) - 1e-9)
            all_of_them = count == len(members)
            drawn.append(members if all_of_them else ctx.rng("clustering", one).choice(members, count, replace=False))
        return np.sort(np.concatenate(drawn))
