"""Who takes part in a round: write here whom you would ask, and why.

As it stands, a new uniform draw of clients each round. What is learnt of them from round to round goes into the memory;
a selector that looks at what came back overrides `observe` too.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Context, Memory, Plan, Range, Selector


class OwnSelector(Selector):
    """`count` clients a round, or all where there are fewer."""

    count: Annotated[int, Range(1)]

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        drawn = ctx.rng("selector").choice(ctx.clients, min(self.count, ctx.clients), replace=False)
        return ctx.plan(np.sort(drawn)), memory
