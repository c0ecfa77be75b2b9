"""Every training takes a half-normal time, whoever trains on however many examples; links take none.

Source: FLSim 0.1, of FedBuff's authors (`flsim/utils/timing/training_duration_distribution.py`, the distribution "per
user half normal"): a duration is `least_s` + |z|, z ~ N(0, `std_s`^2), drawn anew for each training. The clock is that
of `machines.py`. Legend: n clients.
"""

from typing import Annotated, Literal

import numpy as np

from fedexp.parts import Context, Positive, Range, Resources
from fedexp.parts.fleet.machines import Machines, answer_passes

SHORTEST_S = 1e-9  # of a training whose draw is 0


class HalfNormal(Machines):
    """Seconds of training; all else as in every fleet of machines."""

    link: Literal["shared", "own"] = "own"
    std_s: Annotated[float, Positive] = 1.25
    least_s: Annotated[float, Range(0)] = 0.0

    def resources(self, owner: np.ndarray, ctx: Context) -> Resources:
        from scipy.special import ndtri

        draws = ctx.fleet.draws("fleet", owner=owner)[:, 0]
        training_s = np.maximum(self.least_s + self.std_s * ndtri((1 + draws) / 2), SHORTEST_S)
        sizes = ctx.sizes[owner]
        trained, infinite = np.maximum(ctx.fleet.epochs(sizes, owner) * sizes, 1.0), np.full(len(owner), np.inf)
        work = trained + answer_passes(owner, ctx) * sizes
        return Resources(infinite, trained / training_s, work, ctx.traffic.download_bits, self.overhead_s)
