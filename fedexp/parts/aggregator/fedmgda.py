"""FedMGDA+ (Hu et al. 2020, arXiv 2006.11489): a step that goes along with every client, if there is one.

Updates are normalised, u_i = d_i / |d_i|, and the step is the shortest of all sum_i lambda_i u_i whose weights lambda_i
>= 0 sum to one and are within eps of the shares p_i, |lambda_i - p_i| <= eps. With eps = 1 it makes an acute angle with
every update, or is 0 where nothing does; eps = 0 is the mean of the normalised updates. The step is no longer than 1:
what the paper calls the global step size is `server_optimizer.lr`, as in `algorithm=fedmgda`.

Lengths are those of trainable entries; buffers take the mean. `step_norm` is the length of the step, `moved` the
largest |lambda_i - p_i|. The weights are found by accelerated projected gradients (Beck and Teboulle 2009)
with restarts, to a duality gap of 1e-9.
"""

from typing import Annotated, ClassVar

import numpy as np
import torch

from fedexp.parts import (
    Aggregator,
    Columns,
    Context,
    Fraction,
    Memory,
    Uploads,
    Weights,
    distances_to,
    inner_products,
    mix_columns,
)

GAP, ITERATIONS = 1e-9, 2_000


def nearest_weights(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The point closest to `values [C]` that sums to one between `low [C]` and `high [C]`."""
    least, most = (values - high).min(), (values - low).max()
    for _ in range(64):
        shift = (least + most) / 2
        if (values - shift).clip(low, high).sum() > 1:
            least = shift
        else:
            most = shift
    return (values - most).clip(low, high)


def duality_gap(weight: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """How much a linear function of `slope [C]` can fall from `weight [C]` between the bounds, sums kept."""
    order, lowest = np.argsort(slope, kind="stable"), low.copy()
    room = (high - low)[order]
    free = (1 - low.sum() - np.concatenate([[0], np.cumsum(room)[:-1]])).clip(0, room)
    lowest[order] += free
    return float(slope @ (weight - lowest))


def min_norm_weights(products: np.ndarray, share: np.ndarray, eps: float) -> np.ndarray:
    """The weights `[C]` within eps of `share [C]` of the shortest mixture of rows with `products [C, C]`."""
    low, high = (share - eps).clip(min=0), (share + eps).clip(max=1)
    weight = point = share
    size = max(float(np.linalg.eigvalsh(products)[-1]), 1e-300)
    momentum = 1.0
    for _ in range(ITERATIONS):
        if duality_gap(weight, products @ weight, low, high) <= GAP:
            break
        following = nearest_weights(point - products @ point / size, low, high)
        if (point - following) @ (following - weight) > 0:  # it has gone too far: begin with no momentum again
            momentum = 1.0
        faster = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        point = following + (momentum - 1) / faster * (following - weight)
        weight, momentum = following, faster
    return weight


def weights_of_moving(products: np.ndarray, share: np.ndarray, eps: float) -> np.ndarray:
    """The weights `[C]` of the shortest mixture; rows of no length, which would always be the shortest, get none."""
    moving = np.flatnonzero((np.diag(products) > 0) & (share > 0))
    if len(moving) in (0, len(share)):
        return min_norm_weights(products, share, eps)
    weight = np.zeros(len(share))
    weight[moving] = min_norm_weights(products[np.ix_(moving, moving)], share[moving] / share[moving].sum(), eps)
    return weight


class FedMGDA(Aggregator):
    """The shortest convex combination of normalised updates near their shares."""

    idle_columns: ClassVar[Columns] = {"step_norm": None, "moved": None}

    eps: Annotated[float, Fraction] = 0.1

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        share = self.shares(uploads)
        if not share.any():
            return weights, {"columns": self.idle_columns}
        parameters, device = weights.layout.parameters, uploads.delta.device
        trainable = uploads.delta[:, :parameters]
        norm = distances_to(trainable)
        scale = torch.where(norm > 0, 1 / norm.clamp(min=1e-300), 0.0)
        products = (inner_products(trainable) * scale * scale[:, None]).cpu().numpy()
        weight = weights_of_moving(products, share.cpu().numpy(), self.eps)
        step = mix_columns(torch.from_numpy(weight).to(device) * scale, share, uploads.delta, parameters)
        columns = {
            "step_norm": float(distances_to(step[None, :parameters])[0]),
            "moved": float(np.abs(weight - share.cpu().numpy()).max()),
        }
        return Weights(weights.flat + step, weights.layout), {"columns": columns}
