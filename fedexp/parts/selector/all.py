"""All clients take part in every round."""

import numpy as np

from fedexp.parts import Context, Memory, Plan, Selector


class All(Selector):
    """All N clients."""

    learns = False
    foreseeable = True

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        return ctx.plan(np.arange(ctx.clients)), memory

    def clients_per_round(self, clients: int) -> int:
        return clients
