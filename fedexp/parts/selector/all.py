"""Everybody takes part in every round."""

from dataclasses import dataclass

import numpy as np

from fedexp.core.values import Memory, Plan
from fedexp.parts.selector.contract import Selector
from fedexp.simulation.context import Context


@dataclass(frozen=True, kw_only=True)
class All(Selector):
    """All N clients."""

    foreseeable = True

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        return ctx.plan(np.arange(ctx.clients)), memory
