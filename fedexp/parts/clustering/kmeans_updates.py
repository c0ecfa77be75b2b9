"""Clients grouped by k-means on their first updates, for comparison (Briggs et al. 2020 cluster hierarchically).

The clients that are there before the first round are divided into `count` groups by the change of their fine-tuned
models (scikit-learn's k-means, ten starts); later ones join the group with the nearest centre. The centres stay. With
`begins_with=founder` a cluster begins with its centre, the mean of these models of its first members.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import ConfigError, Context, Range, distances_to
from fedexp.parts.clustering.queued import ClusterAssignment, QueuedClustering


def group_by_kmeans(rows: torch.Tensor, count: int, seed: int) -> tuple[np.ndarray, torch.Tensor]:
    """Groups `[n]` of `rows [n, D]`, numbered from 0 by their first member, and their centres `[count, D]`.

    Equal rows are never divided, so there may be fewer groups.
    """
    from sklearn.cluster import KMeans  # here, because it takes a second to import

    count = min(count, len(torch.unique(rows, dim=0)))
    kmeans = KMeans(count, n_init=10, random_state=seed)  # pyright: ignore[reportArgumentType] - a number is fine
    label = kmeans.fit_predict(rows.double().cpu().numpy())
    order = list(dict.fromkeys(label.tolist()))
    centres = torch.from_numpy(kmeans.cluster_centers_[order]).to(rows)
    return np.array([order.index(raw_label) for raw_label in label.tolist()], dtype=np.int64), centres


class KMeansUpdates(QueuedClustering):
    """Divides the first clients into `count` groups by k-means; later ones join the nearest."""

    reveals = "the first update of each client"

    count: Annotated[int, Range(1)]

    def check(self) -> None:
        super().check()
        if self.rate:
            raise ConfigError(
                f"KMeansUpdates.rate must be 0, because groups are made of those who are there at first, got "
                f"{self.rate:g}; use clustering.arrivals"
            )

    def assign_newcomers(self, rows: torch.Tensor, references: torch.Tensor, ctx: Context) -> ClusterAssignment:
        if len(references) == 0:
            seed = int(ctx.run_rng("kmeans").integers(2**31))
            group, references = group_by_kmeans(rows, self.count, seed)
            distance = [
                float(distances_to(row[None], references[label])[0]) for row, label in zip(rows, group, strict=True)
            ]
            return ClusterAssignment(group + 1, np.array(distance), references)
        distances = np.stack([distances_to(references, row).cpu().numpy() for row in rows])
        return ClusterAssignment(distances.argmin(axis=1) + 1, distances.min(axis=1), references)
