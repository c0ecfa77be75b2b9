"""A step of the server every so many simulated seconds, with what has arrived; what comes later counts in a later step.

Free places are filled after each step. A step is longer where nobody is there to begin with, or where selection itself
takes longer than the period; the next one counts from its end. If nothing has arrived, the model stays as it is, and so
does what the server's optimizer remembers, unless the aggregator steps by what it remembers, as MIFA does.
"""

from typing import Annotated

from fedexp.parts import Context, OverlappingPacing, Positive, StepRule


class Periodic(OverlappingPacing):
    """`clients` train at a time; a step every `period_s` simulated seconds."""

    has_period = True

    period_s: Annotated[float, Positive] = 60.0

    def describe(self, clients: int, usual: str) -> str:
        return f"{self.clients} of {clients} clients at a time, a step every {self.period_s:g} s"

    def rule(self, ctx: Context) -> StepRule:
        return StepRule(self.clients, None, self.period_s, False, ctx.fleet.shares_link, self.max_staleness)
