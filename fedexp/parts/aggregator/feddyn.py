"""FedDyn's server (Acar et al. 2021, arXiv 2111.04263, algorithm 1): the mean, corrected by what clients remember.

h <- h - alpha / N sum over those that came of d_k, and the model is x + mean(d_k) - h / alpha on the trainable entries;
buffers take the mean. h, zero at first, is the mean of the g_k that `local=feddyn` keeps, over all N clients with
examples. alpha must be that of the clients, as in `algorithm=feddyn`; alpha = 0 is the uniform mean. Where a selector
gives some clients more importance, the mean is weighted by it, and h is not.

h follows the d_k that arrive, and g_k what client k trained. So where messages are changed on their way (by an attack,
by privacy that clips and noises them, by `pre_aggregation=arc`), h is no longer the mean of the g_k.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from fedexp.parts import SERVER, Aggregator, Context, Memory, Range, Uploads, Weights, mix_rows


class DynamicMean(Aggregator):
    """The uniform mean minus h / alpha."""

    keeps_rows = True
    needs_cohort = "remembers with the clients how far each went from the model of the round"

    weighting: Literal["uniform"] = "uniform"

    client_keys: ClassVar = ("alpha",)

    alpha: Annotated[float, Range(0)] = 0.01

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        uploads = uploads.where(uploads.owner != SERVER)
        if not self.row_weights(uploads).any():
            return weights, memory
        parameters, clients = weights.layout.parameters, int(np.count_nonzero(ctx.sizes))
        mean = plain_mean = mix_rows(self.shares(uploads)[None], uploads.delta)[0]
        if not self.alpha:
            return Weights(weights.flat + mean, weights.layout), memory
        if len(np.unique(uploads.importance)) > 1:  # clients remember their own steps, however much they count
            equal = replace(uploads, importance=np.ones(len(uploads.owner)))
            plain_mean = mix_rows(self.shares(equal)[None], uploads.delta)[0]
        share, before = len(uploads.owner) / clients, memory.get("correction", mean.new_zeros(parameters))
        correction = before + share * plain_mean[:parameters]  # is -h / alpha
        step = torch.cat([mean[:parameters] + correction, mean[parameters:]])
        return Weights(weights.flat + step, weights.layout), memory | {"correction": correction}
