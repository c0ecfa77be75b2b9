"""Zeno: the updates that lower the server's own loss most (Xie, Koyejo & Gupta 2019, arXiv 1805.10032).

s(u) = f(x) - f(x + u) - rho ||u||^2, where f is the mean loss on `batch_size` of the server's validation examples,
drawn anew each round. The n - b highest scores are averaged, b being `byzantine`. A client sends its whole step, the
paper's -gamma times gradient with gamma = 1. f(x) is the same for all and changes no order, so it is not computed.
`penalty=text` is the paper's squared norm; the authors' code takes `mean_square`, the mean over the D coordinates,
with rho = lr / 200. A loss that is not a number ranks last; ties go to the smallest client number. Needs f < n.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from fedexp.parts import Columns, Context, Range, Uploads, Weights, distances_to
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.reporting import BoundedRule


def top_positions(loss: np.ndarray, penalty: np.ndarray, keep: int) -> np.ndarray:
    """Positions `[keep]` of the highest -loss - penalty, ascending; `loss [C]`, `penalty [C]` may be infinite."""
    with np.errstate(invalid="ignore"):
        score = -loss - penalty
    score[~np.isfinite(score)] = -np.inf
    return np.sort(np.argsort(-score, kind="stable")[:keep])


class Zeno(BoundedRule):
    """Reports how many rows it kept."""

    needs_validation = True
    idle_columns: ClassVar[Columns] = {"kept": 0}
    weighting: Literal["uniform"] = "uniform"
    batch_size: Annotated[int, Range(1)] | Literal["full"] = 4
    rho: Annotated[float, Range(0)] = 5e-4
    penalty: Literal["text", "mean_square"] = "text"

    def reduce_in_round(
        self, weights: Weights, uploads: Uploads, byzantine: int, ctx: Context
    ) -> tuple[torch.Tensor, Columns]:
        rows = len(uploads.owner)
        loss = ctx.validation.losses(weights.flat + uploads.delta, self.examples(ctx))
        selected = torch.from_numpy(top_positions(loss, self.penalties(uploads.delta), rows - byzantine))
        share = torch.zeros(rows, dtype=torch.float64).index_fill(0, selected, 1 / len(selected))
        return weighted_mean(uploads.delta, share.to(uploads.delta.device)), {"kept": len(selected)}

    def examples(self, ctx: Context) -> np.ndarray | None:
        """Numbers `[B]` of this round's validation examples; None for all of them."""
        size = ctx.validation.size
        if self.batch_size == "full" or self.batch_size >= size:
            return None
        return np.sort(ctx.rng("aggregator", "examples").choice(size, self.batch_size, replace=False))

    def penalties(self, delta: torch.Tensor) -> np.ndarray:
        """The penalty on each row's score for its norm, float64 [C], for `delta [C, D]`."""
        square = distances_to(delta).square().cpu().numpy()
        return self.rho * (square if self.penalty == "text" else square / delta.shape[1])
