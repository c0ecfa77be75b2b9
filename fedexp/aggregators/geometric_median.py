"""Geometric median: the point x with the smallest sum_k a_k ||u_k - x|| (RFA: Pillutla et al. 2022, arXiv 1912.13445).

Weiszfeld's iteration: from the weighted mean, x becomes the mean of the rows weighted by a_k / max(eps, ||u_k - x||),
until the objective falls by no more than `ftol` of itself or `iterations` are over. Settings as in the package
geom_median (eps 1e-6, 100 iterations, ftol 1e-20), not RFA's own 4 iterations.

The rows span at most C dimensions, so they are rotated into those once and the iteration costs C^2 instead of C D.
Deviations, for rows far away from the others, where the mean is a bad start and 100 iterations from it may not do:
the row with the smallest objective is the answer if it is the minimum (as with more than half of the weight); if it is
only better than the mean, the iteration starts with the step out of it (Vardi & Zhang 2000). A step that does not
lower the objective is not taken; the decrease is summed from differences, which keep their digits beside huge sums.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch

from fedexp.aggregators.fedavg import weighted_mean
from fedexp.aggregators.reporting import ReportingRule
from fedexp.rows import blocks, squared_distances
from fedexp.spec import Positive, Range
from fedexp.values import Columns

ROUNDING = 1e-12  # of a row's norm: what the rotation may move it by


def rotated(rows: torch.Tensor) -> torch.Tensor:
    """The rows `[C, D]` in the coordinates of their own span, float64 [C, at most C].

    The triangular factor of a QR decomposition, a block of columns at a time. Householder's method moves each row by
    a rounding of its own norm, however large the others are.
    """
    factor = torch.zeros((0, len(rows)), dtype=torch.float64, device=rows.device)
    for _, block in blocks(rows):
        factor = torch.linalg.qr(torch.cat([factor, block.T.double()]), mode="r").R
    return factor.T.contiguous()


def distances(rows: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
    """||u_k - x||, `[C]`."""
    return torch.linalg.vector_norm(rows - point, dim=1)


def decrease(rows: torch.Tensor, weight: torch.Tensor, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """How much the objective falls from `old` to `new`: ||u - x|| - ||u - y|| = (y - x)(2u - x - y) / (sum of both)."""
    both = distances(rows, old) + distances(rows, new)
    fall = ((rows - old) + (rows - new)) @ (new - old)
    return (weight * torch.where(both > 0, fall / both, 0.0)).sum()


def out_of(rows: torch.Tensor, weight: torch.Tensor, start: int) -> tuple[torch.Tensor, bool]:
    """Weights of the rows after Vardi and Zhang's step out of a row, and whether that row is the only minimum."""
    gap, norm = rows - rows[start], torch.linalg.vector_norm(rows, dim=1)
    distance = torch.linalg.vector_norm(gap, dim=1)
    here = distance <= ROUNDING * (norm + norm[start])
    force = torch.where(here, 0.0, weight / distance)
    held, pull = weight[here].sum(), torch.linalg.vector_norm(force @ gap)
    stay = torch.zeros_like(weight).index_fill(0, torch.tensor(start, device=rows.device), 1.0)
    if pull < held * (1 - 1e-9):
        return stay, True
    part = (held / pull).clamp(max=1)
    return part * stay + (1 - part) * force / force.sum(), False


def weiszfeld(
    rows: torch.Tensor, weight: torch.Tensor, eps: float, iterations: int, ftol: float
) -> tuple[torch.Tensor, int]:
    """Weights `[C]` whose mean of the rows is the geometric median, and the iterations that it took."""
    apart = squared_distances(rows).sqrt() @ weight
    central = int(apart.argmin())
    mix, minimal = out_of(rows, weight, central)
    if minimal:
        return mix, 0
    if apart[central] >= weight @ distances(rows, weight @ rows) * (1 - 1e-9):
        mix = weight
    point = mix @ rows
    for number in range(1, iterations + 1):
        force = weight / distances(rows, point).clamp(min=eps)
        closer = force / force.sum()
        fall = decrease(rows, weight, point, closer @ rows)
        if fall <= 0:
            return mix, number
        mix, point = closer, closer @ rows
        if fall <= ftol * (weight @ distances(rows, point)):
            return mix, number
    return mix, iterations


@dataclass(frozen=True, kw_only=True)
class GeometricMedian(ReportingRule):
    """Bears any values of rows with less than half of the weight."""

    idle: ClassVar[Columns] = {"iterations": 0}
    eps: Annotated[float, Positive] = 1e-6
    iterations: Annotated[int, Range(1)] = 100
    ftol: Annotated[float, Range(0)] = 1e-20

    def centre(self, delta: torch.Tensor, share: torch.Tensor) -> tuple[torch.Tensor, Columns]:
        mix, taken = weiszfeld(rotated(delta), share, self.eps, self.iterations, self.ftol)
        return weighted_mean(delta, mix), {"iterations": taken}
