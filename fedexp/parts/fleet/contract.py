"""The contract of fleets: the clients' machines and links, and the clock."""

import numpy as np

from fedexp.core.client_resources import Resources
from fedexp.core.part import Part
from fedexp.core.values import Memory, Plan, Uploads
from fedexp.parts.context import Context


class Fleet(Part):
    """The clients' machines and links, and the clock. The base has neither: uploads arrive, no time passes."""

    simulates = False

    def refuse(self, clients: int | None) -> None:
        """Raises ConfigError where the fleet's files do not cover this many clients (None: not known yet)."""

    def resources(self, owner: np.ndarray, ctx: Context) -> Resources:
        """Bandwidth, speed and workload of the clients `owner [n]` in this round."""
        raise NotImplementedError

    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        """The uploads that arrive, and the simulated seconds of the round."""
        return uploads, 0.0, memory
