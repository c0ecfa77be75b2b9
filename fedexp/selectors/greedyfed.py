"""GreedyFed (Singhal, Pandey & Popovski 2023, arXiv 2312.09108, algorithm 4): the largest mean Shapley values.

First every client takes part once: ceil(N / M) rounds of M clients in one random order, the last block completed with
random earlier clients. Then the M clients with the largest mean Shapley value so far take part (the mean over a
client's own participations, algorithm 4 line 14, not equation 4.6 of the selection thesis).
Deviations: the published code does not shuffle and spends one more round on random clients when M divides N; ties go to
the smallest id, not to a random client.
"""

from dataclasses import dataclass

import numpy as np

from fedexp.context import Context
from fedexp.selectors.contributions import ShapleySelector, means_and_counts
from fedexp.selectors.ranking import highest
from fedexp.values import Memory, Plan


def opening_rounds(clients: int, count: int) -> int:
    """How many rounds it takes until every client took part once."""
    return -(-clients // count)


def opening_block(ctx: Context, count: int) -> np.ndarray | None:
    """The clients of this round while not everybody has had a turn, ascending; None afterwards."""
    clients, block = ctx.clients, ctx.round - 1
    if block >= opening_rounds(clients, count):
        return None
    order = ctx.run_rng("selector", "order").permutation(clients)
    turn = order[block * count : (block + 1) * count]
    missing = min(count, clients) - len(turn)
    earlier = ctx.rng("selector", "completion").choice(order[: block * count], missing, replace=False)
    return np.sort(np.concatenate([turn, earlier]))


@dataclass(frozen=True, kw_only=True)
class GreedyFed(ShapleySelector):
    """`count` clients a round."""

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        owner = opening_block(ctx, self.count)
        if owner is None:
            owner = highest(means_and_counts(memory, ctx.clients)[0], self.count)
        return ctx.plan(owner), memory
