"""The contract of availability: when clients are there, on the simulated clock.

Who is away when a step begins cannot be asked in it. Legend: N clients, n of them.
"""

from collections.abc import Callable

import numpy as np

from fedexp.core.part import Part

# from clients `owner [n]` and a time to whether each is there, bool [n], and until when that holds, seconds [n]
Timeline = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]


class Availability(Part):
    """The base: every client is always there."""

    changes = False  # whether clients come and go
    interrupts = False  # whether the work of a client that goes is lost; else it ends what it has begun

    def refuse(self, clients: int | None) -> None:
        """Raises ConfigError where its files do not fit to this many clients (None: not known yet)."""

    def timeline(self, clients: int, seed: int) -> Timeline:
        """A function of clients and time, for one that `changes`: who is there, and until when that holds.

        For a client that is there, that is when it goes; one that is away may still be so then (infinity: for good).
        What it draws follows from the seed, the client and the time alone, whatever was looked at before.
        """
        raise NotImplementedError
