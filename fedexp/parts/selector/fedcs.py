"""FedCS (Nishio & Yonetani 2019, arXiv 1804.08333): as many clients as can upload before the deadline.

Some random candidates report their resources for the round; the greedy algorithm of `deadline.py` selects from them.
T_cs and T_agg are the fleet's `overhead_s`, 0 by default as in the paper's experiments. Legend: n candidates, C
participants.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Context, Memory, Plan, Positive, Range, Resources, Selector
from fedexp.parts.selector.deadline import fill_round
from fedexp.parts.selector.random import sample_clients


class FedCS(Selector):
    """`candidates` report their resources; the round may take `round_s` simulated seconds."""

    candidates: Annotated[int, Range(1)]
    round_s: Annotated[float, Positive] = 180.0

    needs_fleet = True
    needs_cohort = "fills a round up to its deadline"
    foreseeable = True

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        candidates = sample_clients(ctx.clients, self.candidates, ctx.rng("selector"), ctx.fleet.busy)
        resources = ctx.fleet.resources(candidates)
        round_s, memory = self.deadline(resources, memory)
        chosen = self.select_candidates(candidates, resources, round_s, ctx)
        plan, columns = self.make_plan(candidates, resources, chosen, ctx)
        columns = {"deadline_s": round_s, "candidates": len(candidates), **columns}
        return Plan(plan.owner, plan.shards, None, round_s), {**memory, "columns": columns}

    def deadline(self, resources: Resources, memory: Memory) -> tuple[float, Memory]:
        """The simulated seconds that this round may take."""
        return self.round_s, memory

    def select_candidates(
        self, candidates: np.ndarray, resources: Resources, round_s: float, ctx: Context
    ) -> np.ndarray:
        """Positions `[C]` among `candidates [n]` of those that take part, in the order of their uploads."""
        return fill_round(resources, round_s)

    def make_plan(
        self, candidates: np.ndarray, resources: Resources, chosen: np.ndarray, ctx: Context
    ) -> tuple[Plan, dict[str, float]]:
        """The plan of the participants at the positions `chosen [C]` of `candidates [n]`, and columns to record."""
        return ctx.plan(candidates[chosen]), {}
