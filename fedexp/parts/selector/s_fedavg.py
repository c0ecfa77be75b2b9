"""S-FedAvg (Nagalapatti & Narayanam 2021, "Game of Gradients"): draws in proportion to relevance.

Every client has a relevance phi_k, 1/N at first. After a round phi_k <- alpha phi_k + beta SV_k for its participants,
SV_k being the running mean of the client's Shapley values. Participants are drawn one after another, without
replacement, with p = softmax(phi), and a client has the weight n_k / p_k in the mean. The running mean and this weight
are those of a program (`sfedavg_run` in github.com/pringlesinghal/GreedyFed), a comment of which has alpha = 0.75 and
beta = 0.25, its script 0.1 and 0.9. The selection thesis only describes the method.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Context, Fraction, Memory, Plan, Range, Uploads
from fedexp.parts.selector.ranking import exclude_busy, weighted_draw
from fedexp.parts.selector.shapley_selector import ShapleySelector


def inverse_softmax(values: np.ndarray) -> np.ndarray:
    """1 / softmax of `values [n]`, up to a common factor that a mean cancels; at most 1, so nothing overflows."""
    return np.exp(values.min(initial=np.inf) - values)


class SFedAvg(ShapleySelector):
    """`count` clients a round; remembers `relevance [N]` besides the mean Shapley values."""

    alpha: Annotated[float, Fraction] = 0.75
    beta: Annotated[float, Range(0)] = 0.25

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        relevance = self._relevance(memory, ctx)
        owner = weighted_draw(exclude_busy(relevance, ctx.fleet.busy), self.count, ctx.rng("selector"))
        plan = ctx.plan(owner)
        return Plan(plan.owner, plan.shards, inverse_softmax(relevance[owner])), memory

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        relevance = self._relevance(memory, ctx).copy()
        memory = super().observe(uploads, memory, ctx)
        owner = uploads.owner[uploads.owner >= 0]
        relevance[owner] = self.alpha * relevance[owner] + self.beta * memory["mean"].numpy()[owner]
        return {**memory, "relevance": torch.from_numpy(relevance)}

    def _relevance(self, memory: Memory, ctx: Context) -> np.ndarray:
        relevance = memory.get("relevance")
        return np.full(ctx.clients, 1 / ctx.clients) if relevance is None else relevance.numpy()
