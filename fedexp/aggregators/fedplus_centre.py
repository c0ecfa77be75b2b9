"""Fed+'s centre (Yu et al. 2020, arXiv 2009.06303): the point that the models of all clients, asked or not, agree on.

The server remembers what each client last sent; one that was never heard of still has the first model, and a client
without examples has none. The centre x minimises the sum of the penalty's Moreau envelopes with rho = mu / alpha, so
that mean_k[clipped(w_k - x)] = 0: the mean for `l2_squared`, a smoothed geometric median for `l2`, a smoothed
coordinate median for `l1`.

The paper's fixed point, x <- x + mean_k[clipped(w_k - x)], starts at the mean and moves by rho at most. As a clipped
residual is a part p_k of the residual, dividing the move by mean_k p_k, which is at most 1, keeps the fixed point and
makes the iteration Weiszfeld's where rho is small. rho below 1e-9 of the models' median distance from x counts as
that. Penalties bear on trainable entries; of BatchNorm's statistics the mean is taken.

The client's share in this is `local=fedplus`; other local rules may be used with it. Clients count alike.
Legend: n models, P trainable entries.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from fedexp.context import Context
from fedexp.proximal import Penalty, part
from fedexp.roles import Aggregator
from fedexp.spec import Positive, Range
from fedexp.values import SERVER, ClientRows, Memory, Uploads, Weights

COLUMNS = 4096
FLOOR = 1e-9


def mean(rows: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """sum_k share_k w_k of `rows [n, P]`, float64 [P], a block of columns at a time."""
    return torch.cat([share @ block.double() for block in rows.split(COLUMNS, dim=1)])


def distances(rows: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """||w_k - x||, float64 [n]."""
    square = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    for block, centre in zip(rows.split(COLUMNS, dim=1), x.split(COLUMNS), strict=True):
        square += (block.double() - centre).square().sum(dim=1)
    return square.sqrt()


def moved(
    rows: torch.Tensor, share: torch.Tensor, x: torch.Tensor, together: torch.Tensor | None, rho: float
) -> torch.Tensor:
    """The next x, float64 [P]: mean_k[p_k (w_k - x)] / mean_k p_k further, p_k what clipping leaves of a residual.

    `together [n]` are the p_k of whole models; None: every entry has its own.
    """
    blocks = []
    for block, centre in zip(rows.split(COLUMNS, dim=1), x.split(COLUMNS), strict=True):
        gap = block.double() - centre
        weight = share[:, None] * (part(gap.abs(), rho) if together is None else together[:, None])
        blocks.append(centre + (weight * gap).sum(dim=0) / weight.sum(dim=0))
    return torch.cat(blocks)


def robust_centre(
    rows: torch.Tensor, share: torch.Tensor, penalty: Penalty, rho: float, limits: tuple[float, int]
) -> tuple[torch.Tensor, int]:
    """The centre of `rows [n, P]`, float64 [P], and the iterations that it took.

    `limits`: at which move it stops, in units of the rows' median distance from it; and the most iterations.
    """
    tolerance, iterations = limits
    x = mean(rows, share)
    distance = distances(rows, x)
    if penalty == "l2_squared" or not distance.any():
        return x, 0
    for taken in range(1, iterations + 1):
        typical = float(distance.median())
        floored = max(rho, FLOOR * typical)
        following = moved(rows, share, x, part(distance, floored) if penalty == "l2" else None, floored)
        gap, x = float(torch.linalg.vector_norm(following - x)), following
        if gap <= tolerance * typical:
            return x, taken
        distance = distances(rows, x)
    return x, iterations


@dataclass(frozen=True, kw_only=True)
class FedPlusCentre(Aggregator):
    """Centre of all clients' last models. `penalty`, `mu` and `alpha` are those of the local rule."""

    weighting: Literal["uniform"] = "uniform"
    penalty: Penalty = "l2"
    mu: Annotated[float, Range(0)] = 0.1
    alpha: Annotated[float, Positive] = 0.1
    tolerance: Annotated[float, Positive] = 1e-6
    iterations: Annotated[int, Range(1)] = 100

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        heard = uploads.where(uploads.owner != SERVER)
        held = ClientRows.load(memory, weights.layout.size, heard.delta)
        if len(heard.owner) == 0:
            return weights, held.save() | {"columns": {"iterations": 0, "heard": len(held.owner)}}
        held = held.put(heard.owner, weights.flat + heard.delta)
        share = torch.ones(len(held.owner) + 1, dtype=torch.float64, device=held.rows.device)
        share[-1] = max(0, ctx.holders - len(held.owner))
        rows, trainable = torch.cat([held.rows, ctx.first.flat[None]]), weights.layout.parameters
        share /= share.sum()
        limits = (self.tolerance, self.iterations)
        x, taken = robust_centre(rows[:, :trainable], share, self.penalty, self.mu / self.alpha, limits)
        flat = torch.cat([x, mean(rows[:, trainable:], share)]).to(weights.flat.dtype)
        return Weights(flat, weights.layout), held.save() | {"columns": {"iterations": taken, "heard": len(held.owner)}}
