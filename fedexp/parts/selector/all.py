"""All clients that can be asked take part in every round, or as many as there are places for, in random order."""

from fedexp.parts import Context, Memory, Plan, Selector
from fedexp.parts.selector.random import sample_clients


class All(Selector):
    """All N clients."""

    learns = False
    foreseeable = True

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        count = self.choice_size(ctx.clients, ctx)
        return ctx.plan(sample_clients(ctx.clients, count, ctx.rng("selector"), ctx.fleet.busy)), memory

    def clients_per_round(self, clients: int) -> int:
        return clients
