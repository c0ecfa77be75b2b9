"""Centered clipping (Karimireddy, He & Jaggi 2021, arXiv 2012.10333), without the clients' momentum.

v <- v + mean_k (u_k - v) min(1, tau / ||u_k - v||), `iterations` times (the paper: once). v starts at the last round's
result, as in the paper, or at zero. The radius tau is fixed, or a quantile of the distances to v (0.5: their median).
"""

from typing import Annotated, Literal

import torch

from fedexp.core.part import Fraction, PositiveOrInfinite, Range
from fedexp.core.values import Memory, Uploads, Weights
from fedexp.maths.rows import clip_factors, distances_to
from fedexp.parts.aggregator.contract import Aggregator
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.norm_clipping import clip_radius
from fedexp.parts.context import Context


def move_centre(
    delta: torch.Tensor, share: torch.Tensor, centre: torch.Tensor, distance: torch.Tensor, radius: float
) -> torch.Tensor:
    """The `centre [D]` moved by the weighted mean of the clipped differences to the rows `delta [C, D]`, float64.

    The mean is weighted by `share [C]`; `distance [C]` is that of each row to the centre.
    """
    weight = share * clip_factors(distance, radius)
    return (1 - weight.sum()) * centre + weighted_mean(delta, weight)


class CenteredClipping(Aggregator):
    """Remembers `centre [D]`, its last result; reports the last radius and how many rows it cut."""

    weighting: Literal["num_samples", "uniform"] = "uniform"
    radius: Annotated[float, PositiveOrInfinite] | None = None
    quantile: Annotated[float, Fraction] = 0.5
    iterations: Annotated[int, Range(1)] = 1
    start: Literal["last", "zero"] = "last"

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        share = self.shares(uploads)
        if not share.any():
            return weights, {**memory, "columns": {"radius": None, "clipped": 0}}
        last_centre = memory.get("centre") if self.start == "last" else None
        centre = torch.zeros_like(weights.flat, dtype=torch.float64) if last_centre is None else last_centre.double()
        radius, clipped = 0.0, 0
        for _ in range(self.iterations):
            distance = distances_to(uploads.delta, centre)
            radius = clip_radius(distance, self.radius, self.quantile)
            clipped = int((distance > radius).sum())
            centre = move_centre(uploads.delta, share, centre, distance, radius)
        row = centre.to(weights.flat.dtype)
        new_memory = {"centre": row} if self.start == "last" else {}
        columns = {"radius": radius, "clipped": clipped}
        return Weights(weights.flat + row, weights.layout), {**new_memory, "columns": columns}
