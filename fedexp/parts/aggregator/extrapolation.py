"""FedExP (Jhunjhunwala et al. 2023, arXiv 2301.09604): the mean, lengthened as far as the updates disagree.

The step on the trainable entries is r mean(d_k) with r = max(1, sum_k p_k ||d_k||^2 / (2 (||mean||^2 + eps))), where
p_k are the shares: in the paper 1 / C (algorithm 1). Updates that point apart have a short mean and a large r; of equal
ones r is 1, which is FedAvg. Lengths are those of trainable entries; buffers take the mean. `rate` is r, a column of
metrics.csv.

Deviations: the paper evaluates the mean of the last two models, which swing with a large r; here it is the last one.
The authors' program weighs by examples, adds C eps in place of eps, and lets eps (0.001 for CIFAR, 0.1 for EMNIST)
shrink with the square of the rate.
"""

from typing import Annotated

import torch

from fedexp.parts import Aggregator, Context, Memory, Positive, Uploads, Weights, distances_to, mix_rows


class Extrapolation(Aggregator):
    """The weighted mean times a rate that follows from the lengths of the updates."""

    eps: Annotated[float, Positive] = 1e-3

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        share = self.shares(uploads)
        if not share.any():
            return weights, {"columns": {"rate": None}}
        parameters, mean = weights.layout.parameters, mix_rows(share[None], uploads.delta)[0]
        squares = distances_to(uploads.delta[:, :parameters]).square()
        square = torch.linalg.vector_norm(mean[:parameters], dtype=torch.float64).square()
        rate = float(((share * squares).sum() / (2 * (square + self.eps))).clamp(min=1))
        step = torch.cat([rate * mean[:parameters], mean[parameters:]])
        return Weights(weights.flat + step, weights.layout), {"columns": {"rate": rate}}
