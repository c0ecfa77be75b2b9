"""GreedyFed (Singhal, Pandey & Popovski 2023, arXiv 2312.09108): the largest mean Shapley values.

First every client takes part once: ceil(N / M) rounds of M clients in one random order, the last block completed with
random earlier clients. Then the M clients with the largest mean Shapley value so far take part (the mean over a
client's own participations, as in line 14 of algorithm 4 of the selection thesis, and not as in its equation 4.6).
A client whose first upload was lost, or that was away in its turn, has no mean yet and comes before all others. Who
is away is never asked; its place in the first rounds goes to an earlier client.
Deviations: ties go to the smallest id, not to a random client. With `opening=published` the blocks follow the client
numbers, as in the published code: floor(N / M) of them, and one more round of the leftover clients completed with
random earlier ones (all random if M divides N).
"""

from typing import Literal

import numpy as np

from fedexp.parts import Context, Memory, Plan
from fedexp.parts.selector.ranking import exclude_busy, highest
from fedexp.parts.selector.shapley_selector import ShapleySelector, means_and_counts


def opening_rounds(clients: int, count: int) -> int:
    """The number of rounds until every client has taken part once."""
    return -(-clients // count)


def opening_order(ctx: Context) -> np.ndarray:
    """The random order `[N]` in which clients take part for the first time."""
    return ctx.run_rng("selector", "order").permutation(ctx.clients)


def without_busy(owner: np.ndarray, ctx: Context) -> np.ndarray:
    """Those of `owner [n]` that can be asked, in their order."""
    return owner[~np.isin(owner, ctx.fleet.busy)]


def highest_free(scores: np.ndarray, count: int, ctx: Context) -> np.ndarray:
    """The clients with the highest of `scores [N]`, at most `count` of those that can be asked, ascending."""
    return highest(exclude_busy(scores, ctx.fleet.busy), min(count, ctx.clients - len(ctx.fleet.busy)))


class GreedyFed(ShapleySelector):
    """`count` clients a round."""

    opening: Literal["shuffled", "published"] = "shuffled"

    def scores(self, mean: np.ndarray, count: np.ndarray, ctx: Context) -> np.ndarray | None:
        return mean if count.all() else None

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        clients, start = ctx.clients, (ctx.round - 1) * self.count
        shuffled = self.opening == "shuffled"
        last = opening_rounds(clients, self.count) if shuffled else clients // self.count + 1
        if ctx.round > last:
            mean, count = means_and_counts(memory, clients)
            return ctx.plan(highest_free(np.where(count > 0, mean, np.inf), self.count, ctx)), memory
        order = opening_order(ctx) if shuffled else np.arange(clients)
        turn, earlier = (without_busy(block, ctx) for block in (order[start : start + self.count], order[:start]))
        missing = min(self.count - len(turn), len(earlier))
        completion = ctx.rng("selector", "completion").choice(earlier, missing, replace=False)
        return ctx.plan(np.sort(np.concatenate([turn, completion]))), memory
