"""Nearest-neighbour mixing (Allouah et al. 2023, arXiv 2302.01772).

Every row becomes the plain mean of the n - f rows nearest to it, itself included; ties go to the smallest client
number. Its owner, examples and importance stay. Needs 2f < n. Rows may be clipped to a length before, as byzfl's README
does (github.com/LPD-EPFL/byzfl, "Clipping").
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
import torch

from fedexp.core.part import PositiveOrInfinite
from fedexp.core.values import Memory, Uploads
from fedexp.maths.rows import distances_to, mix_rows, squared_distances
from fedexp.parts.byzantine import Tolerant
from fedexp.parts.context import Context
from fedexp.parts.pre_aggregation.contract import PreAggregation


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


def clip_rows(delta: torch.Tensor, longest: float) -> torch.Tensor:
    """The rows of `delta [C, D]`, none longer than `longest`."""
    norm = distances_to(delta)
    return delta * torch.where(norm > longest, longest / norm, 1.0)[:, None].to(delta.dtype)


class NearestNeighbours(Tolerant, PreAggregation):
    """Passes on no rows in a round in which the model is to stay unchanged."""

    clip_norm: Annotated[float, PositiveOrInfinite] | None = None

    averages_rows = True
    bound = "2f < n"

    def max_byzantine(self, rows: int) -> int:
        return (rows - 1) // 2

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        rows = len(uploads.owner)
        byzantine, columns = self.effective_byzantine(rows, ctx.round)
        if byzantine is None:
            return uploads.where(np.zeros(rows, dtype=bool)), {"columns": columns}
        delta = uploads.delta if self.clip_norm is None else clip_rows(uploads.delta, self.clip_norm)
        return replace(uploads, delta=neighbour_means(delta, byzantine)), {"columns": columns}
