"""Upper confidence bounds on Shapley values (as in the code of GreedyFed): SV_k + beta sqrt(ln(t + 1) / N_k).

t counts rounds from 0, N_k the client's participations; a client that never took part comes first (N_k = 0 gives
infinity), in the random order in which GreedyFed opens. The selection thesis drops beta and writes ln t; beta = 0 is
GreedyFed.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedexp.context import Context
from fedexp.selectors.contributions import ShapleySelector, means_and_counts
from fedexp.selectors.greedyfed import opening_block
from fedexp.selectors.ranking import highest
from fedexp.spec import Range
from fedexp.values import Memory, Plan


def upper_bounds(mean: np.ndarray, count: np.ndarray, elapsed: int, beta: float) -> np.ndarray:
    """The scores [N] after `elapsed` rounds; infinite where `count` is 0."""
    width = np.full(len(mean), np.inf)
    np.divide(np.log(elapsed + 1), count, out=width, where=count > 0)
    return mean + beta * np.sqrt(width) if beta else np.where(count > 0, mean, np.inf)


@dataclass(frozen=True, kw_only=True)
class UCB(ShapleySelector):
    """`count` clients a round, `beta` wide."""

    beta: Annotated[float, Range(0)] = 0.01

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        owner = opening_block(ctx, self.count)
        if owner is None:
            mean, count = means_and_counts(memory, ctx.clients)
            owner = highest(upper_bounds(mean, count, ctx.round - 1, self.beta), self.count)
        return ctx.plan(owner), memory
