"""Geometric median: the point x with the smallest sum_k a_k ||u_k - x|| (RFA: Pillutla et al. 2022, arXiv 1912.13445).

Weiszfeld's iteration: from the weighted mean, x becomes the mean of the rows weighted by a_k / max(eps, ||u_k - x||),
until the decrease of the objective is at most `ftol` of the rows' weighted median distance from x, or after
`iterations`. Settings as in the package geom_median (eps 1e-6, 100 iterations, ftol 1e-20); RFA's experiments take 2
iterations, its program 4 by default.

The rows span at most C dimensions, so they are rotated into those once and an iteration costs C^2 instead of C D.
Deviations, for rows so far away that 100 iterations from the mean do not lead back, or that dominate the objective:
The iteration is run a second time, from Vardi and Zhang's step (2000) out of the most central row, and the better end
is taken. The decrease is summed from differences, which keep their digits beside huge sums, and is relative to the
distance within which most weight lies. A step that does not decrease the objective is not taken. If a row is itself the
minimum, as one with more than half of the weight is, it is returned unchanged. Legend: R coordinates, at most C.
"""

from typing import Annotated, ClassVar

import torch

from fedexp.parts import Columns, Positive, Range, blocks, squared_distances, weighted_median
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.reporting import ReportingRule

ROUNDING = 1e-12  # share of a row's norm by which the rotation may move it
MARGIN = 1e-9  # relative differences below this may come from rounding


def rotate_to_span(rows: torch.Tensor) -> torch.Tensor:
    """The rows `[C, D]` in coordinates of their own span, float64 `[C, R]`.

    The triangular factor of a QR decomposition, computed by blocks of columns. Householder's method moves each row by a
    rounding of its own norm, however large the others are.
    """
    factor = torch.zeros((0, len(rows)), dtype=torch.float64, device=rows.device)
    for _, block in blocks(rows):
        factor = torch.linalg.qr(torch.cat([factor, block.T.double()]), mode="r").R
    return factor.T.contiguous()


def distances(rows: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
    """||u_k - x||, `[C]`, of rows `[C, R]` from a `point [R]`."""
    return torch.linalg.vector_norm(rows - point, dim=1)


def objective_decrease(rows: torch.Tensor, weight: torch.Tensor, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """How much the objective falls from `old [R]` to `new [R]`, a scalar, for rows `[C, R]` with `weight [C]`.

    ||u - x|| - ||u - y|| = (y - x)(2u - x - y) / (||u - x|| + ||u - y||).
    """
    distance_sum = distances(rows, old) + distances(rows, new)
    difference = ((rows - old) + (rows - new)) @ (new - old)
    return (weight * torch.where(distance_sum > 0, difference / distance_sum, 0.0)).sum()


def most_central(rows: torch.Tensor, weight: torch.Tensor) -> int:
    """The row of `[C, R]` with the smallest ball that holds more than half of the `weight [C]`.

    So at least one honest row is in the ball. Two rows may tie if each is the farthest in the other's ball; then the
    smaller sum of all distances decides.
    """
    distance, order = squared_distances(rows).sqrt().sort(dim=1, stable=True)
    within = weight[order].cumsum(dim=1) <= (0.5 + MARGIN) * weight.sum()
    radius = distance.gather(1, within.sum(dim=1, keepdim=True))[:, 0]
    distance_sum = (distance * weight[order]).sum(dim=1)
    return int(distance_sum.masked_fill(radius > radius.min() * (1 + MARGIN), torch.inf).argmin())


def coincident_and_pulls(rows: torch.Tensor, weight: torch.Tensor, row: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which rows of `[C, R]` coincide with this one, bool `[C]`; the others' pull, `weight [C]` over distance."""
    norm = torch.linalg.vector_norm(rows, dim=1)
    distance = distances(rows, rows[row])
    coincident = distance <= ROUNDING * (norm + norm[row])
    return coincident, torch.where(coincident, 0.0, weight / distance)


def vardi_zhang_step(rows: torch.Tensor, weight: torch.Tensor, row: int) -> tuple[torch.Tensor, bool]:
    """Weights `[C]` after Vardi and Zhang's step away from a row, and whether that row is the only minimum (no step).

    `rows [C, R]` have `weight [C]`.
    """
    coincident, pulls = coincident_and_pulls(rows, weight, row)
    anchor_weight, pull_norm = weight[coincident].sum(), torch.linalg.vector_norm(pulls @ (rows - rows[row]))
    stay = torch.zeros_like(weight)
    stay[row] = 1
    if pull_norm <= anchor_weight:
        return stay, bool(pull_norm < anchor_weight * (1 - MARGIN))
    return (anchor_weight * stay + (pull_norm - anchor_weight) * pulls / pulls.sum()) / pull_norm, False


def weiszfeld_weights(rows: torch.Tensor, weight: torch.Tensor, point: torch.Tensor, eps: float) -> torch.Tensor:
    """The weights `[C]` of Weiszfeld's step from a `point [R]`, for rows `[C, R]` with `weight [C]`."""
    force = weight / distances(rows, point).clamp(min=eps)
    return force / force.sum()


def weiszfeld(
    rows: torch.Tensor, weight: torch.Tensor, mix: torch.Tensor, eps: float, iterations: int, ftol: float
) -> tuple[torch.Tensor, int]:
    """Weights `[C]` at which Weiszfeld's iteration ends when it starts from the mean by `mix [C]`; and its steps.

    `rows [C, R]` have `weight [C]`.
    """
    for step in range(1, iterations + 1):
        point = mix @ rows
        closer = weiszfeld_weights(rows, weight, point, eps)
        improvement = objective_decrease(rows, weight, point, closer @ rows)
        mix = closer if improvement > 0 else mix
        if improvement <= ftol * weighted_median(distances(rows, point), weight):
            return mix, step
    return mix, iterations


def geometric_median(
    rows: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, iterations: int = 100, ftol: float = 1e-20
) -> tuple[torch.Tensor, int]:
    """Weights `[C]` with which the mean of the rows `[C, R]` is their geometric median, and the steps that it took."""
    mix, steps = weiszfeld(rows, weight, weight, eps, iterations, ftol)
    start, _ = vardi_zhang_step(rows, weight, most_central(rows, weight))
    restart_mix, restart_steps = weiszfeld(rows, weight, start, eps, iterations, ftol)
    if objective_decrease(rows, weight, mix @ rows, restart_mix @ rows) > MARGIN * weighted_median(
        distances(rows, restart_mix @ rows), weight
    ):
        mix, steps = restart_mix, restart_steps
    nearest, minimal = vardi_zhang_step(rows, weight, int(distances(rows, mix @ rows).argmin()))
    return (nearest if minimal else mix), steps


class GeometricMedian(ReportingRule):
    """Tolerates any rows that have less than half of the weight."""

    idle_columns: ClassVar[Columns] = {"iterations": 0}
    eps: Annotated[float, Positive] = 1e-6
    iterations: Annotated[int, Range(1)] = 100
    ftol: Annotated[float, Range(0)] = 1e-20

    def reduce_and_report(self, delta: torch.Tensor, share: torch.Tensor) -> tuple[torch.Tensor, Columns]:
        mix, steps = geometric_median(rotate_to_span(delta), share, self.eps, self.iterations, self.ftol)
        return weighted_mean(delta, mix), {"iterations": steps}
