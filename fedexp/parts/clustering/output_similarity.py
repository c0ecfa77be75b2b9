"""Clients grouped by what their models answer (the clustering text).

The distance of a newcomer to a cluster is the mean over the server's public examples of ||f(x) - g(x)||_2, f and g the
log-softmax outputs of the newcomer's model and of the cluster's founder's, who was as new then: both made theirs of the
server's model in as little training. The newcomer goes to the nearest cluster that is nearer than `threshold`, else
founds one. The text's formula takes the arg-min, its pseudo-code the first cluster that is near enough:
`rule=first_match`. With `compared_with=model` the cluster's own model takes the founder's place once there is one; the
more rounds it has learnt, the surer its answers, and the farther is a newcomer's model of the same kind.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.core.part import PositiveOrInfinite
from fedexp.parts.clustering.queued import Placed, Queued
from fedexp.parts.context import Context


def output_distances(outputs: torch.Tensor, references: torch.Tensor) -> np.ndarray:
    """Mean over S examples of the L2 norms between `outputs [n, S, K]` and `references [M, S, K]`: float64 [n, M]."""
    rows = [torch.linalg.vector_norm(references.double() - each.double(), dim=2).mean(dim=1) for each in outputs]
    return torch.stack(rows).cpu().numpy() if rows else np.zeros((0, len(references)))


def chosen(distance: np.ndarray, threshold: float, first_match: bool) -> int | None:
    """Which of `distance [M]` is below the threshold: the least, or the first; None where none is."""
    near = np.flatnonzero(distance < threshold)
    if not len(near):
        return None
    return int(near[0]) if first_match else int(near[np.argmin(distance[near])])


@dataclass(frozen=True, kw_only=True)
class OutputSimilarity(Queued):
    """The nearest cluster below `threshold`, else a new one."""

    needs_public = True
    reveals = "what the model of each newcomer answers"

    threshold: Annotated[float, PositiveOrInfinite]
    rule: Literal["nearest", "first_match"] = "nearest"
    compared_with: Literal["founder", "model"] = "founder"

    @property
    def follows(self) -> bool:
        return self.compared_with == "model"

    def place(self, rows: torch.Tensor, references: torch.Tensor, ctx: Context) -> Placed:
        outputs, known = ctx.public.outputs(rows), ctx.public.outputs(references)
        cluster, distances = [], []
        for row, output in zip(rows, outputs, strict=True):
            distance = output_distances(output[None], known)[0]
            place = chosen(distance, self.threshold, self.rule == "first_match")
            if place is None:
                references, known = torch.cat([references, row[None]]), torch.cat([known, output[None]])
                place, distance = len(references) - 1, np.append(distance, np.inf)
            cluster.append(place + 1)
            distances.append(float(distance[place]))
        return Placed(np.array(cluster, dtype=np.int64), np.array(distances), references)
