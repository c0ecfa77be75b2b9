"""Clients grouped by the outputs of their models (the clustering text).

The distance of a newcomer to a cluster is the mean of ||f(x) - g(x)||_2 over the server's public examples; of more than
1,000 a sample of as many is taken, the same in every round. f and g are the log-softmax outputs of the newcomer's model
and of that of the cluster's founder when it was new; both come from the server's model after equally little training.
The newcomer joins the nearest cluster if that is nearer than `threshold`, else it founds one. The text's formula takes
the nearest, its pseudo-code the first cluster that is near enough: `rule=first_match`. With `compared_with=model` a
cluster's own model replaces the founder's once there is one. The more rounds that model has trained, the more confident
its outputs, and the farther from it even a similar newcomer is.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import Context, PositiveOrInfinite
from fedexp.parts.clustering.queued import ClusterAssignment, QueuedClustering


def output_distances(outputs: torch.Tensor, references: torch.Tensor) -> np.ndarray:
    """Mean over S examples of the L2 norms between `outputs [n, S, K]` and `references [M, S, K]`: float64 [n, M]."""
    rows = [torch.linalg.vector_norm(references.double() - output.double(), dim=2).mean(dim=1) for output in outputs]
    return torch.stack(rows).cpu().numpy() if rows else np.zeros((0, len(references)))


def choose_cluster(distance: np.ndarray, threshold: float, first_match: bool) -> int | None:
    """Position of the smallest, or first, of `distance [M]` below the threshold; None if none is."""
    near = np.flatnonzero(distance < threshold)
    if not len(near):
        return None
    return int(near[0]) if first_match else int(near[np.argmin(distance[near])])


class OutputSimilarity(QueuedClustering):
    """Assigns a newcomer to the nearest cluster below `threshold`, else founds a new one."""

    needs_public = True
    reveals = "what the model of each newcomer answers"

    threshold: Annotated[float, PositiveOrInfinite]
    rule: Literal["nearest", "first_match"] = "nearest"
    compared_with: Literal["founder", "model"] = "founder"

    @property
    def updates_references(self) -> bool:
        return self.compared_with == "model"

    def assign_newcomers(self, rows: torch.Tensor, references: torch.Tensor, ctx: Context) -> ClusterAssignment:
        outputs, reference_outputs = ctx.public.outputs(rows), ctx.public.outputs(references)
        cluster, distances = [], []
        for row, output in zip(rows, outputs, strict=True):
            distance = output_distances(output[None], reference_outputs)[0]
            position = choose_cluster(distance, self.threshold, self.rule == "first_match")
            if position is None:
                references = torch.cat([references, row[None]])
                reference_outputs = torch.cat([reference_outputs, output[None]])
                position, distance = len(references) - 1, np.append(distance, np.inf)
            cluster.append(position + 1)
            distances.append(float(distance[position]))
        return ClusterAssignment(np.array(cluster, dtype=np.int64), np.array(distances), references)
