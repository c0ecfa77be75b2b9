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
from fedexp.core.part import MAX_INTEGER, Range
from fedexp.core.values import Memory, Plan, Uploads, Weights
from fedexp.parts.clustering.agreement import adjusted_rand
from fedexp.parts.clustering.arrivals import count_arrivals, parse_arrivals
from fedexp.parts.clustering.contract import Clustering, Event, Models, mean_of_clusters
from fedexp.parts.clustering.membership import Membership
from fedexp.parts.context import Context


@dataclass(frozen=True)
class ClusterAssignment:
    """Newcomers' clusters: `cluster [n]` from 1, `distance [n]`, and all clusters' new `references [M, D]`."""

    cluster: np.ndarray
    distance: np.ndarray
    references: torch.Tensor


class QueuedClustering(Clustering):
    """Arrivals, queue, joining, sampling within clusters, the global model; subclasses assign newcomers."""

    has_clusters = True
    updates_references = False  # whether newcomers are compared with a cluster's own model, once it has trained one

    arrivals: tuple[str, ...] = ()
    rate: Annotated[float, Range(0, MAX_INTEGER)] = 0.0
    admitted: Annotated[int, Range(1)] | None = None
    fine_tune_epochs: Annotated[int, Range(1)] | None = None
    take: Annotated[float, Range(0, 1, low_open=True)] = 1.0
    begins_with: Literal["server", "founder"] = "server"
    global_model: Literal["clusters", "server"] = "clusters"

    def check(self) -> None:
        if parse_arrivals(self.arrivals) and self.rate:
            raise ConfigError(
                f"{type(self).__name__}.arrivals must be [] where there is a rate of them, "
                f"got {list(self.arrivals)}; leave one out"
            )

    def refuse(self, clients: int | None) -> None:
        later = sum(parse_arrivals(self.arrivals).values())
        if clients is not None and later > clients:
            raise ConfigError(
                f"clustering.arrivals must name at most the number of clients, {clients}, got {later}; name fewer"
            )

    def assign_newcomers(self, rows: torch.Tensor, references: torch.Tensor, ctx: Context) -> ClusterAssignment:
        """The clusters of newcomers with models `rows [n, D]`, given the present clusters' `references [M, D]`."""
        raise NotImplementedError

    def assign(
        self, models: Models, plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[Models, Plan, np.ndarray, Memory]:
        events: list[Event] = []
        if "references" not in memory:
            models, memory = self._queue_newcomers(models, memory, events, ctx, ctx.round - 1)
        membership = Membership.load(memory)
        joining = membership.next_in_queue(self.admitted)
        for client, label in zip(membership.waiting[joining], membership.waits_for[joining], strict=True):
            events.append((ctx.round, "join", int(client), int(label), None))
        waited = ctx.round - membership.since[joining]
        membership = membership.admit(joining)
        cluster = membership.clusters_of(plan.owner)
        chosen = self._draw_participants(cluster, ctx)
        plan, cluster = plan.where(chosen), cluster[chosen]
        for client, label in zip(plan.owner, cluster, strict=True):
            events.append((ctx.round, "model", int(client), int(label), None))
        new_memory = {"references": memory["references"], "events": tuple(events), "waited": tuple(waited.tolist())}
        return models, plan, cluster, membership.save() | new_memory

    def regroup(self, models: Models, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Models, Memory]:
        references, events = memory["references"].clone(), list(memory["events"])
        for cluster in np.unique(uploads.model).tolist() if self.updates_references else ():
            references[cluster - 1] = models[cluster].flat
        models, memory = self._queue_newcomers(models, memory | {"references": references}, events, ctx, ctx.round)
        membership = Membership.load(memory)
        sizes = membership.sizes(len(models) - 1)
        waited, kinds = memory["waited"], Counter(kind for _, kind, *_ in events)
        columns = {
            "clusters": int((sizes > 0).sum()),
            "largest": int(sizes.max(initial=0)),
            "smallest": int(sizes[sizes > 0].min()) if sizes.any() else 0,
            "waiting": len(membership.waiting),
            "queue_rounds": float(np.mean(waited)) if waited else None,
            "messages": 2 * (kinds["model"] + kinds["server_model"]),
            "mb": 2 * kinds["server_model"] * ctx.traffic.megabytes,
            "agreement": adjusted_rand(ctx.clients_data.groups(membership.owner), membership.cluster),
        }
        if self.global_model == "clusters":
            examples = np.bincount(membership.cluster, weights=ctx.sizes[membership.owner], minlength=len(models))[1:]
            models = (mean_of_clusters(models, examples), *models[1:])
        return models, memory | {"events": tuple(events), "columns": columns}

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        return Membership.load(memory).clusters_of(owner)

    def _queue_newcomers(
        self, models: Models, memory: Memory, events: list[Event], ctx: Context, number: int
    ) -> tuple[Models, Memory]:
        """Appends the clients that arrived in a round (0: before the first) to the queue, in the order of arrival."""
        first = ctx.first.flat
        references = memory.get("references", first.new_zeros((0, len(first))))
        newcomers, membership = self._newcomers(ctx, number), Membership.load(memory)
        if len(newcomers) == 0:
            return models, memory | {"references": references}
        rows = ctx.clients_data.fine_tune(first, newcomers, number, self.fine_tune_epochs)
        assignment, cluster_count = self.assign_newcomers(rows, references, ctx), len(references)
        for client, cluster, distance in zip(
            newcomers.tolist(), assignment.cluster.tolist(), assignment.distance.tolist(), strict=True
        ):
            events.append((number, "server_model", client, 0, None))
            if cluster > cluster_count:
                cluster_count = cluster
                events.append((number, "birth", client, cluster, None))
            membership = membership.enqueue(client, cluster, number)
            events.append((number, "queue", client, cluster, distance if math.isfinite(distance) else None))
        new_references = assignment.references[len(references) :]
        starts = new_references if self.begins_with == "founder" else first.expand(len(new_references), -1)
        models = (*models, *(Weights(row.clone(), ctx.layout) for row in starts))
        return models, memory | membership.save() | {"references": assignment.references}

    def _newcomers(self, ctx: Context, number: int) -> np.ndarray:
        counts = parse_arrivals(self.arrivals)
        order = ctx.run_rng("arrivals").permutation(ctx.clients) if counts or self.rate else np.arange(ctx.clients)
        before, now = (
            count_arrivals(last, ctx.clients, counts, self.rate, ctx.run_rng("arrival_counts"))
            for last in (max(0, number - 1), number)
        )
        return order[before if number else 0 : now]

    def _draw_participants(self, cluster: np.ndarray, ctx: Context) -> np.ndarray:
        """Positions of the clients drawn to take part, ascending, given each candidate's cluster (0: none)."""
        positions = [np.zeros(0, dtype=np.int64)]
        for label in np.unique(cluster[cluster > 0]).tolist():
            members = np.flatnonzero(cluster == label)
            count = math.ceil(self.take * len(members) - 1e-9)
            if count < len(members):
                members = ctx.rng("clustering", label).choice(members, count, replace=False)
            positions.append(members)
        return np.sort(np.concatenate(positions))
