"""All clients take part in every round; where some are busy, all others that there are places for, in random order."""

import numpy as np

from fedexp.parts import Context, Memory, Plan, Selector
from fedexp.parts.selector.random import sample_clients


class All(Selector):
    """All N clients."""

    learns = False
    foreseeable = True

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        if ctx.fleet.capacity is None:
            return ctx.plan(np.arange(ctx.clients)), memory
        return ctx.plan(sample_clients(ctx.clients, ctx.fleet.capacity, ctx.rng("selector"), ctx.fleet.busy)), memory

    def clients_per_round(self, clients: int) -> int:
        return clients
