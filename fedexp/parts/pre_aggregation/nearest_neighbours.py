"""Nearest-neighbour mixing (Allouah et al. 2023, arXiv 2302.01772).

Every row becomes the plain mean of the n - f rows nearest to it, itself included; ties go to the smallest client
number. Its owner, examples and importance stay. Needs 2f < n. Rows may be clipped to a length before, as byzfl's README
does (github.com/LPD-EPFL/byzfl, "Clipping").
"""

from typing import Annotated

import torch

from fedexp.core.part import PositiveOrInfinite
from fedexp.core.values import Columns
from fedexp.maths.rows import clip_rows, mix_rows, squared_distances
from fedexp.parts.pre_aggregation.bounded import BoundedPreAggregation


def neighbour_means(delta: torch.Tensor, byzantine: int) -> torch.Tensor:
    """The mean of the n - f nearest rows of each row of `delta [C, D]`, `[C, D]`.

    Raises:
        ValueError: 2f < n does not hold.
    """
    if 2 * byzantine >= len(delta):
        raise ValueError(f"nearest-neighbour mixing needs 2f < n, got f = {byzantine} and n = {len(delta)}")
    neighbours = len(delta) - byzantine
    nearest = squared_distances(delta).sort(dim=1, stable=True).indices[:, :neighbours]
    mix = torch.zeros((len(delta), len(delta)), dtype=torch.float64, device=delta.device)
    return mix_rows(mix.scatter(1, nearest, 1 / neighbours), delta)


class NearestNeighbours(BoundedPreAggregation):
    """Mixes rows, of which none is longer than `clip_norm`."""

    clip_norm: Annotated[float, PositiveOrInfinite] | None = None

    averages_rows = True

    def change_rows(self, delta: torch.Tensor, byzantine: int) -> tuple[torch.Tensor, Columns]:
        clipped = delta if self.clip_norm is None else clip_rows(delta, self.clip_norm)
        return neighbour_means(clipped, byzantine), {}
