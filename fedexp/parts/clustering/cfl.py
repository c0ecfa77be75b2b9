"""Clustered federated learning, CFL (Sattler, Müller and Samek 2019, arXiv 1910.01991, algorithms 1 and 3).

All clients begin in one cluster. After a round, a cluster is divided in two where its model has come to rest but its
clients have not: where the mean of their updates, weighted by examples, is shorter than eps1, and the longest of them
is longer than eps2. Clients are then merged by the cosine similarity of their updates, the most alike first, until two
groups are left. That makes the largest similarity between the groups as small as it can be (`linkage=single`). Both go
on from the same model. Lengths and cosines are those of trainable entries.

A cluster is judged only in a round in which a finite update of each of its members with examples came, as with
`selector=all`; where fewer take part, it is not divided until they all happen to. The group with the smallest client
number keeps the cluster's number and what server optimizers remember of it; clients without examples stay there.

Deviations: the paper divides only if it can also bound how far the clients' gradients are from those of their
distributions, which nobody sees in practice; here, as in the authors' program, that is not asked. The program takes the
unweighted mean and `linkage=complete`, with eps1 = 0.4, eps2 = 1.6 after round 20 and for three clients or more.
There each group takes its own mean in the round of the division, and momentum lasts from round to round.
`clustering.mean_norm` and `max_norm` are the smallest and the largest of the clusters that were judged.

Where clients protect what they send (`privacy=client_local`, `privacy=dp_sgd`), lengths and cosines are those of their
noise, too, and the thresholds must be set for it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import Context, Memory, Plan, Range, Uploads, distances_to, inner_products, mix_rows
from fedexp.parts.clustering.agreement import adjusted_rand
from fedexp.parts.clustering.contract import Clustering, Event, Models, mean_of_clusters

Linkage = Literal["single", "complete"]


def cosine_similarities(rows: torch.Tensor) -> np.ndarray:
    """The cosine of every two of `rows [n, P]`, float64 [n, n]; 0 where a row is zero."""
    products = inner_products(rows)
    norm = products.diagonal().sqrt()
    norm = torch.where(norm > 0, norm, torch.inf)
    return (products / norm[:, None] / norm).cpu().numpy()


def bipartition(similarity: np.ndarray, method: Linkage) -> np.ndarray:
    """Which of the n > 1 clients are in the group without the first, bool [n], given `similarity [n, n]`."""
    from scipy.cluster.hierarchy import cut_tree, linkage  # here, because it takes time to import

    pairs = np.triu_indices(len(similarity), 1)
    group = cut_tree(linkage((1 - similarity[pairs]).clip(min=0), method), n_clusters=2)[:, 0]
    return group != group[0]


@dataclass(frozen=True)
class Judgement:
    """A cluster whose members' updates all came: how long they are, and who leaves it, `[n]`, if it is divided."""

    mean_norm: float
    max_norm: float
    leaving: np.ndarray
    similarity: float | None = None  # the largest between the groups


class CFL(Clustering):
    """Divides clusters by the directions of updates. Remembers the cluster of every client, `[N]`."""

    has_clusters = True
    compares_updates = True

    eps1: Annotated[float, Range(0, infinite=True)] = 0.4
    eps2: Annotated[float, Range(0, infinite=True)] = 1.6
    linkage: Linkage = "single"

    def assign(
        self, models: Models, plan: Plan, memory: Memory, ctx: Context
    ) -> tuple[Models, Plan, np.ndarray, Memory]:
        events: list[Event] = []
        if len(models) == 1:
            models, memory = (*models, *models), {"cluster": torch.ones(ctx.clients, dtype=torch.int64)}
            events = [(ctx.round, "join", client, 1, None) for client in range(ctx.clients)]
        number = self.model_of(plan.owner, memory)
        events += [
            (ctx.round, "model", client, cluster, None)
            for client, cluster in zip(plan.owner.tolist(), number.tolist(), strict=True)
        ]
        return models, plan, number, memory | {"events": tuple(events)}

    def regroup(self, models: Models, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Models, Memory]:
        cluster, events = memory["cluster"].numpy().copy(), list(memory["events"])
        participants = sum(kind == "model" for _, kind, *_ in events)
        uploads, judgements = uploads.where(uploads.is_finite()), []
        for number in range(1, len(models)):
            members = np.flatnonzero((cluster == number) & (ctx.sizes > 0))
            judgement = self._judge(members, uploads, ctx)
            if judgement is None:
                continue
            judgements.append(judgement)
            if len(judgement.leaving):
                models = (*models, models[number])
                cluster[judgement.leaving] = len(models) - 1
                events += move_events(ctx.round, judgement, number, len(models) - 1)
        sizes = np.bincount(cluster, minlength=len(models))[1:]
        examples = np.bincount(cluster, weights=ctx.sizes, minlength=len(models))[1:]
        columns = {
            "clusters": int((sizes > 0).sum()),
            "largest": int(sizes.max()),
            "messages": 2 * participants,
            "mb": 0.0,
            "agreement": adjusted_rand(ctx.clients_data.groups(np.arange(ctx.clients)), cluster),
            "judged": len(judgements),
            "mean_norm": min((judgement.mean_norm for judgement in judgements), default=None),
            "max_norm": max((judgement.max_norm for judgement in judgements), default=None),
            "similarity": max((it.similarity for it in judgements if it.similarity is not None), default=None),
        }
        memory = memory | {"cluster": torch.from_numpy(cluster), "events": tuple(events), "columns": columns}
        return (mean_of_clusters(models, examples), *models[1:]), memory

    def model_of(self, owner: np.ndarray, memory: Memory) -> np.ndarray:
        return memory["cluster"].numpy()[owner] if "cluster" in memory else np.zeros(len(owner), dtype=np.int64)

    def _judge(self, members: np.ndarray, uploads: Uploads, ctx: Context) -> Judgement | None:
        """What the finite `uploads` of `members [n]` say of their cluster; None where some are missing."""
        arrived = uploads.where(np.isin(uploads.owner, members)).sort_by_owner()
        if len(members) < 2 or not np.array_equal(arrived.owner, members):
            return None
        rows = arrived.delta[:, : ctx.layout.parameters]
        weight = arrived.examples * arrived.importance
        share = torch.from_numpy(weight / max(weight.sum(), 1e-300)).to(rows.device)
        mean_norm = float(distances_to(mix_rows(share[None], rows))[0])
        max_norm = float(distances_to(rows).max())
        if not (mean_norm < self.eps1 and max_norm > self.eps2):
            return Judgement(mean_norm, max_norm, members[:0])
        similarity = cosine_similarities(rows)
        leaves = bipartition(similarity, self.linkage)
        return Judgement(mean_norm, max_norm, members[leaves], float(similarity[leaves][:, ~leaves].max()))


def move_events(number: int, judgement: Judgement, before: int, after: int) -> list[Event]:
    """What happens where a cluster is divided in a round: the new one is born, and its members change to it."""
    clients = judgement.leaving.tolist()
    moves: list[Event] = [(number, "birth", clients[0], after, None)]
    for client in clients:
        moves += [(number, "leave", client, before, None), (number, "join", client, after, judgement.similarity)]
    return moves
