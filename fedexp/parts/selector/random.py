"""Uniform random selection without replacement (McMahan et al. 2017, algorithm 1): m = max(C*K, 1) clients a round.

C*K is rounded up, as in the selection thesis' code; with more places than clients all take part.
"""

import math
from typing import Annotated

import numpy as np

from fedexp.parts import ConfigError, Context, Memory, Plan, Range, Selector


def sample_clients(clients: int, count: int, rng: np.random.Generator, busy: np.ndarray | None = None) -> np.ndarray:
    """`count` different numbers below `clients`, ascending, `[count]`; all if there are no more.

    None is `busy [b]`, ascending. O(count + b) work, but for all.
    """
    occupied = np.zeros(0, np.int64) if busy is None else busy
    free = clients - len(occupied)
    drawn = np.arange(free) if count >= free else np.sort(rng.choice(free, count, replace=False, shuffle=False))
    return drawn + np.searchsorted(occupied - np.arange(len(occupied)), drawn, side="right")


class Random(Selector):
    """A new uniform draw each round, of a `count` of clients or of a `fraction` of them."""

    learns = False
    foreseeable = True

    count: Annotated[int, Range(1)] | None = None
    fraction: Annotated[float, Range(0, 1, low_open=True)] | None = None

    @property
    def size_keys(self) -> tuple[str, ...]:
        return ("count", "fraction")

    def check(self) -> None:
        if (self.count is None) == (self.fraction is None):
            raise ConfigError(
                "Random.count and fraction: one must be given and the other null, got "
                + ("neither" if self.count is None else f"count={self.count} and fraction={self.fraction:g}")
            )

    def clients_per_round(self, clients: int) -> int:
        """How many of this many clients are selected in a round."""
        if self.count is not None:
            return min(self.count, clients)
        assert self.fraction is not None
        return max(1, math.ceil(self.fraction * clients - 1e-9))

    def rate(self, clients: int) -> float:
        return self.clients_per_round(clients) / clients

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        count = self.choice_size(self.clients_per_round(ctx.clients), ctx)
        return ctx.plan(sample_clients(ctx.clients, count, ctx.rng("selector"), ctx.fleet.busy)), memory
