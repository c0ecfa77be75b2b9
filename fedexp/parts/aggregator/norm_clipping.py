"""Norm clipping: the mean of updates cut to a largest norm (Sun et al. 2019, arXiv 1911.07963).

u_k min(1, r / ||u_k||), averaged. The radius r is fixed, or a quantile q of the round's norms (0.5: their median), so
that it needs no tuning and shrinks with the updates. It lies between two norms where q (C - 1) is no whole number, so
of C rows at most C - 1 - ceil(q (C - 1)) may be long without raising it above the norms of the others.
"""

from typing import Annotated, ClassVar

import torch

from fedexp.parts import Columns, Fraction, PositiveOrInfinite, clip_factors, distances_to
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.reporting import ReportingRule


def clip_radius(norm: torch.Tensor, fixed: float | None, quantile: float) -> float:
    """The fixed radius, or the quantile of the norms `[C]`, linear between two of them."""
    return fixed if fixed is not None else float(torch.quantile(norm, quantile))


class NormClipping(ReportingRule):
    """Reports the radius and how many rows were clipped."""

    idle_columns: ClassVar[Columns] = {"radius": None, "clipped": 0}
    radius: Annotated[float, PositiveOrInfinite] | None = None
    quantile: Annotated[float, Fraction] = 0.5

    def reduce_and_report(self, delta: torch.Tensor, share: torch.Tensor) -> tuple[torch.Tensor, Columns]:
        norm = distances_to(delta)
        radius = clip_radius(norm, self.radius, self.quantile)
        row = weighted_mean(delta, share * clip_factors(norm, radius))
        return row, {"radius": radius, "clipped": int((norm > radius).sum())}
