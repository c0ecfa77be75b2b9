"""Clients come and go at random, and more of them are there at some time of the day than at another.

As in `markov.py`, with p_k(t) = p_k (1 + `swing` sin(2 pi (t / `day_s` + z_k))): the chance that client k is there
after a redraw. Its mean over the day, p_k, is the share of the time that it is there. Who is there follows p_k(t) with
a delay of about `redraw_s`, and swings 1 / sqrt(1 + (2 pi `redraw_s` / `day_s`)^2) times as far: redraws must be much
more frequent than days. The phases z_k are uniform from 0 to `zones`, 0 for all of one time zone and 1
for all of a globe. With share 0.5, swing 0.8 and one zone it is the law `SLN` of FLGo 0.4: q_k times 0.5 + 0.4 sin, in
a day of 24 rounds.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import ConfigError, Fraction, PoissonMarks, Positive, stream
from fedexp.parts.availability.markov import Markov


class Day(Markov):
    """In one time zone most are there about `redraw_s` after a quarter of the day, and fewest half a day after that."""

    swing: Annotated[float, Fraction] = 0.8
    day_s: Annotated[float, Positive] = 86400.0
    zones: Annotated[float, Fraction] = 0.0

    def check(self) -> None:
        if self.share * (1 + self.swing) > 1 + 1e-9:
            raise ConfigError(
                f"Day.share must be at most 1 / (1 + swing) = {1 / (1 + self.swing):.4g}, or more than all would be "
                f"there at the best time of the day, got {self.share:g}; lower it or swing"
            )

    def marks(self, share: np.ndarray, seed: int) -> tuple[PoissonMarks, PoissonMarks]:
        phase = self.zones * stream(seed, "availability", "zone").random(len(share))

        def present_share(owner: np.ndarray, time_s: np.ndarray) -> np.ndarray:
            return share[owner] * (1 + self.swing * np.sin(2 * np.pi * (time_s / self.day_s + phase[owner])))

        high, low = share * (1 + self.swing), share * (1 - self.swing)
        arrivals = PoissonMarks(
            seed,
            "availability_on",
            high / self.redraw_s,
            lambda owner, time_s: present_share(owner, time_s) / high[owner],
        )
        departures = PoissonMarks(
            seed,
            "availability_off",
            (1 - low) / self.redraw_s,
            lambda owner, time_s: (1 - present_share(owner, time_s)) / (1 - low[owner]),
        )
        return arrivals, departures
