"""The contract of fleets: the clients' machines and links, and the clock."""

import numpy as np

from fedexp.core.client_resources import Journeys, Resources
from fedexp.core.part import Part
from fedexp.core.values import Memory, Plan, Uploads
from fedexp.parts.context import Context


class Fleet(Part):
    """The clients' machines and links, and the clock. The base has neither: uploads arrive, no time passes."""

    simulates = False
    shares_link = False  # whether uploads come one after another, also where clients train on while the server steps
    loses_clients = False  # whether some drop out
    breaks_off_sending = False  # whether some of these do so while they send
    deadline_s: float | None = None  # seconds after which a round ends, if any
    idle_s = 0.0  # seconds of a round in which nobody can be asked
    changes_idle_s = False  # whether somebody has asked for other such seconds than the usual ones

    @property
    def idle_keys(self) -> dict[str, str]:
        """Those of its keys that were set and do nothing, each with the key beside which it does nothing."""
        return {}

    def refuse(self, clients: int | None) -> None:
        """Raises ConfigError where the fleet's files do not cover this many clients (None: not known yet)."""

    def resources(self, owner: np.ndarray, ctx: Context) -> Resources:
        """Bandwidth, speed and workload of the clients `owner [n]` in this round."""
        raise NotImplementedError

    def journeys(self, owner: np.ndarray, ctx: Context) -> Journeys:
        """How long the clients `owner [n]` would take if they began in this round; without machines, a second each."""
        zeros = np.zeros(len(owner))
        if not self.simulates:
            return Journeys(zeros, zeros + 1, zeros, zeros > 0)
        resources = self.resources(owner, ctx)
        return Journeys(resources.download_s, resources.update_s, resources.upload_s, zeros > 0)

    def completes(self, owner: np.ndarray, ctx: Context) -> np.ndarray:
        """Which of the clients `owner [n]` train to the end if they begin together in this round, bool [n]."""
        return np.ones(len(owner), bool)

    def judging_s(self, ctx: Context) -> float:
        """Simulated seconds in which clients have evaluated what `ctx.fleet.evaluators` were sent in this round."""
        return 0.0

    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        """The uploads that arrive, and the simulated seconds of the round."""
        return uploads, 0.0, memory
