"""Over-selection (Bonawitz et al. 2019, arXiv 1902.01046): more clients are asked than count, the first to arrive do.

Who arrives first follows from each client's own seconds of download, training and upload; on a shared link from those
of download and training, since whoever is ready first could send first. Ties go to the smaller number; who drops out,
or goes before it would have delivered by itself, comes last. All others are thrown away and told to stop, so all are
free in the next round. They were sent the model but send nothing; so their training is not computed. If too few arrive,
the round has what the fleet delivers. It takes the seconds of those who count, by the fleet's clock and deadlines, so
with as many uploads as clients are asked it is a synchronous round. The server's own row always counts beside them.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import SERVER, Arrivals, Context, Journeys, Memory, Pacing, Plan, Range, Weights


class OverSelection(Pacing):
    """The first `uploads` of a round count."""

    needs_fleet = True
    prefers_fast = True

    uploads: Annotated[int, Range(1)] = 5

    def describe(self, clients: int, usual: str) -> str:
        return f"{usual}, of whom the first {self.uploads} count"

    def most_uploads(self, participants: int) -> int:
        return min(self.uploads, participants)

    def due(self, plan: Plan, model: Weights, memory: Memory, ctx: Context) -> tuple[Arrivals, Memory]:
        clients = np.flatnonzero(plan.owner != SERVER)
        owner = plan.owner[clients]
        journeys = ctx.fleet.journeys(owner)
        order_s = journeys.download_s + journeys.training_s + (0.0 if ctx.fleet.shares_link else journeys.upload_s)
        first = np.lexsort((owner, order_s, never_arrives(owner, journeys, ctx)))[: self.uploads]
        counts = plan.owner == SERVER
        counts[clients[first]] = True
        memory = {**memory, "columns": {"thrown_away": int((~counts).sum())}}
        return Arrivals(plan.where(counts), np.full(counts.sum(), ctx.round), began=plan.owner), memory


def never_arrives(owner: np.ndarray, journeys: Journeys, ctx: Context) -> np.ndarray:
    """Which of the clients `owner [n]` drop out, or go before they would have delivered by themselves, bool [n]."""
    stays_s = ctx.fleet.stays_s(owner) - ctx.fleet.judging_s
    if journeys.breaks_s is not None:
        stays_s = np.minimum(stays_s, journeys.breaks_s)
    return journeys.lost | (journeys.download_s + journeys.training_s + journeys.upload_s > stays_s)
