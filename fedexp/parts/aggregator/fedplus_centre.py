"""Fed+'s centre (Yu et al. 2020, arXiv 2009.06303): a robust centre of the models of all clients, selected or not.

The server remembers what each client last sent; a client never selected still has the first model, and one without
examples does not count. The centre x minimises the sum of the penalty's Moreau envelopes with rho = mu / alpha, so that
mean_k[clipped(w_k - x)] = 0: the mean for `l2_squared`, a smoothed geometric median for `l2`, a smoothed coordinate
median for `l1`, and the plain medians for rho = 0.

The paper iterates x <- x + mean_k[clipped(w_k - x)] from the mean, with moves of at most rho; here the same fixed point
is found in fewer steps. For `l2` a clipped residual is a fraction p_k of the residual, and the move is divided by
mean_k p_k <= 1, which makes it Weiszfeld's where rho is small. In the mean that it starts from, rows of more than 3
times the median norm weigh less: from a mean far away, 100 moves may not lead back. For `l1` the sum of an entry's
clipped residuals is piecewise linear in x, and its zero is found by sorting; where it is zero on an interval, the point
nearest the mean is taken, at which the iteration would end.

Penalties apply to trainable entries; BatchNorm's statistics are averaged. Clients count alike. The clients' side is
`local=fedplus`; other local rules may be used with it. A client whose model has left the range of float32 keeps the one
that it sent before. Legend: n models, P trainable entries, B columns of a block.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from fedexp.core.client_rows import ClientRows
from fedexp.core.device_arrays import finite
from fedexp.core.part import Positive, Range
from fedexp.core.values import SERVER, Memory, Uploads, Weights
from fedexp.maths.proximal import Penalty, proximal_fraction
from fedexp.maths.rows import blocks, distances_to, weighted_median
from fedexp.parts.aggregator.contract import Aggregator
from fedexp.parts.context import Context

MIN_RELATIVE_RHO = 1e-9
OUTLIER_FACTOR = 3.0
LINES_PER_CHUNK = {"cpu": 256}  # medians computed together: for a hundred models they fit into a core's cache


def mean_by_count(rows: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """The mean of `rows [n, P]`, each counted `count [n]` times, float64 [P]."""
    total = rows.new_empty(rows.shape[1], dtype=torch.float64)
    for columns, block in blocks(rows):
        total[columns] = count @ block.double()
    return total / count.sum()


def geometric_centre(
    rows: torch.Tensor, count: torch.Tensor, rho: float, limits: tuple[float, int]
) -> tuple[torch.Tensor, int]:
    """The centre `[P]` of `rows [n, P]`, each `count [n]` times, under the norm; and the iterations that it took.

    `limits`: the move at which it stops, in units of the rows' median distance from x; and the most iterations. rho is
    at least 1e-9 of that distance.
    """
    tolerance, iterations = limits
    norm = distances_to(rows)
    x = mean_by_count(rows, count * proximal_fraction(norm, OUTLIER_FACTOR * weighted_median(norm, count)))
    for step in range(iterations):
        distance = distances_to(rows, x)
        if not distance.any():
            return x, step
        typical_distance = weighted_median(distance, count)
        fraction = proximal_fraction(distance, max(rho, MIN_RELATIVE_RHO * typical_distance))
        following = mean_by_count(rows, count * fraction)
        gap, x = float(torch.linalg.vector_norm(following - x)), following
        if gap <= tolerance * typical_distance:
            return x, step + 1
    return x, iterations


def coordinate_centre(rows: torch.Tensor, count: torch.Tensor, rho: float) -> torch.Tensor:
    """The centre of `rows [n, P]`, each `count [n]` times, under the sum of absolute values, float64 [P]."""
    solve = smoothed_median if rho else median_by_count
    centre = rows.new_empty(rows.shape[1], dtype=torch.float64)
    for columns, block in blocks(rows):
        lines = block.double().T.contiguous().split(LINES_PER_CHUNK.get(rows.device.type, len(centre)))
        centre[columns] = torch.cat([solve(chunk, count, rho) for chunk in lines])
    return centre


def sort_lines(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each line of `values [B, n]` in ascending order, and the order of its entries, both `[B, n]`.

    On a CPU NumPy finds the order six times faster than torch.
    """
    if values.device.type != "cpu":
        return values.sort(dim=1)
    order = torch.from_numpy(np.argsort(values.numpy(), axis=1))
    return values.gather(1, order), order


def median_by_count(w: torch.Tensor, count: torch.Tensor, _rho: float) -> torch.Tensor:
    """The median `[B]` of each line of `w [B, n]`, entries counted `count [n]` times; the one nearest to the mean."""
    ordered, order = sort_lines(w)
    below, half = count[order].cumsum(dim=1), count.sum() / 2
    low, high = (
        ordered.gather(1, reached.int().argmax(dim=1, keepdim=True)) for reached in (below >= half, below > half)
    )
    return (w @ count / count.sum()).clamp(low[:, 0], high[:, 0])


def smoothed_median(w: torch.Tensor, count: torch.Tensor, rho: float) -> torch.Tensor:
    """The zeros `[B]` of the sum of each line's residuals, clipped at rho > 0: the one nearest to the mean.

    `w [B, n]` are the models' entries, each counted `count [n]` times. From left to right, x comes within rho of w_k at
    w_k - rho and leaves it at w_k + rho. Between two such edges the sum is rho (models on the right - on the left) +
    (sum of the models within rho) - (their number) x. It is flat where no model is within rho and as many are on the
    left as on the right. If all models are within rho of their mean, it is the mean.
    """
    mean = w @ count / count.sum()
    has_outlier = ((w - mean[:, None]).abs() > rho).any(dim=1)
    if not has_outlier.any():
        return mean
    return mean.masked_scatter(has_outlier, _root_of_pull(w[has_outlier], count, rho))


def _root_of_pull(w: torch.Tensor, count: torch.Tensor, rho: float) -> torch.Tensor:
    edges, order = sort_lines(torch.cat([w - rho, w + rho], dim=1))
    change = torch.cat([count, -count])[order]
    near, passed_count = change.cumsum(dim=1), (-change).clamp(min=0).cumsum(dim=1)
    beyond = count.sum() - near - 2 * passed_count  # number on the right minus number on the left
    total = (change * torch.cat([w, w], dim=1).gather(1, order)).cumsum(dim=1)
    pull = rho * beyond + torch.where(near > 0, total - near * edges, 0.0)
    last = (pull > 0).sum(dim=1, keepdim=True) - 1  # the zero is before the next edge
    last = last.clamp(0, pull.shape[1] - 2)  # rounding may lose a tiny rho, and with it every pull
    edge, following = edges.gather(1, last), edges.gather(1, last + 1)
    root = (edge + pull.gather(1, last) / near.gather(1, last)).clamp(edge, following)
    flat = ((near == 0) & (beyond == 0)).int()  # exact, as these are counts of models
    first, end = flat.argmax(dim=1, keepdim=True), flat.sum(dim=1, keepdim=True)
    low, high = edges.gather(1, first), edges.gather(1, (first + end).clamp(max=edges.shape[1] - 1))
    nearest = (w @ count / count.sum()).clamp(low[:, 0], high[:, 0])
    return torch.where(end[:, 0] > 0, nearest, root[:, 0])


def robust_centre(
    rows: torch.Tensor, count: torch.Tensor, penalty: Penalty, rho: float, limits: tuple[float, int]
) -> tuple[torch.Tensor, int]:
    """The centre of `rows [n, P]`, each `count [n]` times, float64 [P], and the iterations that it took."""
    if penalty == "l2":
        return geometric_centre(rows, count, rho, limits)
    return (mean_by_count(rows, count) if penalty == "l2_squared" else coordinate_centre(rows, count, rho)), 0


class FedPlusCentre(Aggregator):
    """A robust centre of all clients' last models. `penalty`, `mu` and `alpha` are those of `local=fedplus`."""

    keeps_rows = True
    needs_models = True
    shared_keys: ClassVar = ("penalty", "mu", "alpha")

    weighting: Literal["uniform"] = "uniform"
    penalty: Penalty = "l2"
    mu: Annotated[float, Range(0)] = 0.3
    alpha: Annotated[float, Positive] = 0.3
    tolerance: Annotated[float, Positive] = 1e-6
    iterations: Annotated[int, Range(1)] = 100

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        client_uploads = uploads.where(uploads.owner != SERVER)
        sent = weights.flat + client_uploads.delta
        client_rows = ClientRows.load(memory, weights.layout.size, sent)
        client_rows = client_rows.with_valid_rows(client_uploads.owner, sent, finite(sent))
        columns = {"iterations": 0, "heard": len(client_rows.owner)}
        if len(client_uploads.owner) == 0:
            return weights, client_rows.save() | {"columns": columns}
        rows, trainable = torch.cat([client_rows.rows, ctx.first.flat[None]]), weights.layout.parameters
        count = torch.ones(len(rows), dtype=torch.float64, device=rows.device)
        count[-1] = max(0, int(np.count_nonzero(ctx.sizes)) - len(client_rows.owner))  # those never heard of
        limits = (self.tolerance, self.iterations)
        x, columns["iterations"] = robust_centre(rows[:, :trainable], count, self.penalty, self.mu / self.alpha, limits)
        flat = torch.cat([x, mean_by_count(rows[:, trainable:], count)]).to(weights.flat.dtype)
        return Weights(flat, weights.layout), client_rows.save() | {"columns": columns}
