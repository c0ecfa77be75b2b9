"""Clients come and go at random: a Markov chain of two states for each (on and off), and outages of many at once.

At random moments, `redraw_s` apart on average, client k redraws whether it is there, with the probability p_k. That is
the chain with the rates p_k / redraw_s of coming and (1 - p_k) / redraw_s of going: it stays for redraw_s / (1 - p_k)
and is away for redraw_s / p_k on average, so it is there for the share p_k of the time, from the beginning on.

p_k = `share` T_k / max T with T_k ~ LN(0, -ln(1 - `spread`)): with a share of 1 the law `LN` of FLGo 0.4
(`flgo/simulator/default_simulator.py`, beta = `spread`), which names Ribero et al. 2022 (arXiv 2205.06730) as its
source. Deviation: FLGo redraws everybody in every round, here each does so in its own time.

`sites` divide the clients at random into groups. Each has outages of `outage_s` on average, and the next begins
`outage_every_s` after one has ended, on average (both exponential); in them all of its clients are away. Legend: N
clients, n of them.
"""

from functools import partial
from typing import Annotated

import numpy as np

from fedexp.parts import Availability, PoissonMarks, Positive, Range, Timeline, stream


class Markov(Availability):
    """Each client is there for `share` of the time, less outages; with `spread` the one that is there most."""

    changes = True

    share: Annotated[float, Range(0, 1, low_open=True)] = 0.5
    redraw_s: Annotated[float, Positive] = 1800.0
    spread: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    outage_every_s: Annotated[float, Positive] | None = None
    outage_s: Annotated[float, Positive] = 600.0
    sites: Annotated[int, Range(1)] = 1
    interrupts: bool = True

    def timeline(self, clients: int, seed: int) -> Timeline:
        arrivals, departures = self.marks(client_shares(self.share, self.spread, clients, seed), seed)
        return partial(
            look, arrivals, departures, None if self.outage_every_s is None else self._outages(clients, seed)
        )

    def marks(self, share: np.ndarray, seed: int) -> tuple[PoissonMarks, PoissonMarks]:
        """When clients that are there for `share [N]` of the time come, and when they go."""
        arrivals = PoissonMarks(seed, "availability_on", share / self.redraw_s)
        return arrivals, PoissonMarks(seed, "availability_off", (1 - share) / self.redraw_s)

    def _outages(self, clients: int, seed: int) -> tuple[np.ndarray, Timeline]:
        site = stream(seed, "availability", "site").integers(self.sites, size=clients)
        ends = PoissonMarks(seed, "outage_ends", np.full(self.sites, 1 / self.outage_s))
        begins = PoissonMarks(seed, "outage_begins", np.full(self.sites, 1 / (self.outage_every_s or np.inf)))
        return site, partial(look, ends, begins, None)


def client_shares(share: float, spread: float, clients: int, seed: int) -> np.ndarray:
    """The share `[N]` of the time that each client is there, of which `share` is the largest."""
    if spread == 0:
        return np.full(clients, share)
    log_share = -np.log1p(-spread) * stream(seed, "availability", "share").standard_normal(clients)
    return share * np.exp(log_share - log_share.max())


def look(
    arrivals: PoissonMarks,
    departures: PoissonMarks,
    outages: tuple[np.ndarray, Timeline] | None,
    owner: np.ndarray,
    now_s: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Who of `owner [n]` is there, bool [n], and until when that holds, [n].

    `outages` has the site `[N]` of each client and the times in which sites have none.
    """
    present = arrivals.last_until(owner, now_s) > departures.last_until(owner, now_s)
    until_s = np.empty(len(owner))
    for is_present, marks in ((True, departures), (False, arrivals)):
        rows = np.flatnonzero(present == is_present)
        until_s[rows] = marks.first_after(owner[rows], now_s)
    if outages is None:
        return present, until_s
    sites, site = np.unique(outages[0][owner], return_inverse=True)
    is_up, changes_s = (answer[site] for answer in outages[1](sites, now_s))
    return present & is_up, np.where(is_up, np.where(present, np.minimum(until_s, changes_s), until_s), changes_s)
