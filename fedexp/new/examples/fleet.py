"""The clients' machines, links and clock: write here how fast they are, and which uploads arrive.

As it stands, all are alike, everything arrives, and a round lasts as long as its slowest participant.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Context, Fleet, Memory, Plan, Positive, Resources, Uploads


class OwnFleet(Fleet):
    """Every client passes `speed` examples a second through its model, and has a link of so many Mbit/s."""

    simulates = True

    speed: Annotated[float, Positive] = 50.0
    bandwidth_mbit: Annotated[float, Positive] = 1.4

    def resources(self, owner: np.ndarray, ctx: Context) -> Resources:
        bandwidth, speed = np.full(len(owner), self.bandwidth_mbit), np.full(len(owner), self.speed)
        examples = ctx.sizes[owner]
        work = ctx.fleet.epochs(examples, owner) * examples
        return Resources(bandwidth, speed, work, ctx.traffic.download_bits, upload_ratio=ctx.traffic.upload_ratio)

    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        resources = self.resources(uploads.owner[uploads.owner >= 0], ctx)  # less the server's own rows
        return (
            uploads,
            resources.distribution_s + float((resources.update_s + resources.upload_s).max(initial=0)),
            memory,
        )
