"""Upper confidence bounds on Shapley values, after the code of GreedyFed: SV_k + beta sqrt(ln(t + 1) / N_k).

t is the number of the round for which clients are chosen, from 0, and N_k the client's participations. GreedyFed's code
works out the bounds at the end of the round before, with that round's number: this is `logarithm=t`. Clients that never
took part come first (N_k = 0 gives infinity), in the random order of GreedyFed's first rounds; the other places go to
the highest bounds. The selection thesis drops beta (beta = 1) and writes ln t, too; beta = 0 is GreedyFed after its
first rounds.

What it remembers is what every selector with Shapley values does: `ShapleySelector` in `shapley_selector.py`.
"""

from typing import Annotated, Literal

import numpy as np

from fedexp.parts import Context, Memory, Plan, Range
from fedexp.parts.selector.greedyfed import opening_order, without_busy
from fedexp.parts.selector.ranking import highest
from fedexp.parts.selector.shapley_selector import ShapleySelector, means_and_counts


def upper_bounds(mean: np.ndarray, count: np.ndarray, logarithm: float, beta: float) -> np.ndarray:
    """The scores [N], given `mean [N]` and `count [N]`; infinite where `count` is 0."""
    width = np.full(len(mean), np.inf)
    np.divide(logarithm, count, out=width, where=count > 0)
    return mean + beta * np.sqrt(width) if beta else np.where(count > 0, mean, np.inf)


class UCB(ShapleySelector):
    """`count` clients a round; `beta` scales the width of the bounds."""

    beta: Annotated[float, Range(0)] = 0.01
    logarithm: Literal["t_plus_1", "t"] = "t_plus_1"

    def scores(self, mean: np.ndarray, count: np.ndarray, ctx: Context) -> np.ndarray | None:
        return self._bounds(mean, count, ctx.round) if count.all() else None

    def _bounds(self, mean: np.ndarray, count: np.ndarray, elapsed: int) -> np.ndarray:
        number = max(elapsed + (self.logarithm == "t_plus_1"), 1)  # log(0) is not finite
        return upper_bounds(mean, count, float(np.log(number)), self.beta)

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        mean, count = means_and_counts(memory, ctx.clients)
        bounds, size = self._bounds(mean, count, ctx.round - 1), min(self.count, ctx.clients - len(ctx.fleet.busy))
        first = self._first_time(count, ctx)[:size]
        bounds[np.concatenate([first, ctx.fleet.busy])] = -np.inf
        best = highest(bounds, size - len(first))
        return ctx.plan(np.sort(np.concatenate([first, best]))), memory

    def _first_time(self, count: np.ndarray, ctx: Context) -> np.ndarray:
        """Those that never took part and can be asked, given `count [N]`: whose turn it is first, then the others."""
        if count.all():
            return np.zeros(0, np.int64)
        order, start = opening_order(ctx), (ctx.round - 1) * self.count
        order = np.roll(order, -start) if start < ctx.clients else order
        return without_busy(order[count[order] == 0], ctx)
