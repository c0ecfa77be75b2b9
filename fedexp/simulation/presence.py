"""Who is there when a step begins, and when that is. Legend: N clients, n of them."""

from dataclasses import dataclass, field

import numpy as np

from fedexp.core.errors import RunError
from fedexp.core.values import Memory
from fedexp.parts.availability.contract import Timeline

BLOCK = 1 << 16  # clients that are looked at together, for the sake of memory


class Presence:
    """Who of N clients is there at a time; answers are kept, so that a step asks only of whom they may have changed.

    `present [N]` holds at `now_s`, and for each client until `until_s [N]`.
    """

    def __init__(self, timeline: Timeline, clients: int) -> None:
        self.timeline, self.now_s, self.count = timeline, 0.0, 0
        self.present, self.until_s = np.zeros(clients, dtype=bool), np.zeros(clients)
        self.move(0.0)

    def move(self, now_s: float) -> None:
        """Looks at another time."""
        changing = np.flatnonzero(self.until_s <= now_s) if now_s >= self.now_s else np.arange(len(self.present))
        for first in range(0, len(changing), BLOCK):
            rows = changing[first : first + BLOCK]
            self.count -= int(self.present[rows].sum())
            self.present[rows], self.until_s[rows] = self.timeline(rows, now_s)
            self.count += int(self.present[rows].sum())
        self.now_s = now_s

    def wait(self, now_s: float) -> float:
        """The first time from `now_s` on at which somebody is there.

        Raises:
            RunError: nobody ever is.
        """
        self.move(now_s)
        while not self.count:
            following_s = max(float(self.until_s.min()), np.nextafter(self.now_s, np.inf))
            if np.isinf(following_s):
                raise RunError(
                    f"no client is there any more after {self.now_s:,.0f} simulated seconds; give availability more of "
                    "them (availability.repeat_s with availability=trace) or ask for fewer rounds"
                )
            self.move(following_s)
        return self.now_s

    def stays_s(self, owner: np.ndarray, now_s: float) -> np.ndarray:
        """Seconds `[n]` until the clients `owner [n]`, who are there at `now_s`, go."""
        self.move(now_s)
        return self.until_s[owner] - now_s


@dataclass(frozen=True)
class StepStart:
    """When a step begins, after the server has waited for somebody, and who may begin in it.

    `busy [b]` are those who may not, ascending, `capacity` is how many others may (None: as many as are selected).
    """

    now_s: float = 0.0
    waited_s: float = 0.0
    busy: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    capacity: int | None = None


def begin_step(presence: Presence | None, now_s: float, in_flight: np.ndarray, capacity: int | None) -> StepStart:
    """The start of a step at `now_s` or, with nobody there and nobody `in_flight [b]`, when somebody comes."""
    if presence is None:
        return StepStart(now_s, 0.0, in_flight, capacity)
    if len(in_flight):
        presence.move(now_s)
        start_s, may_begin = now_s, presence.present.copy()
        may_begin[in_flight] = False
    else:
        start_s, may_begin = presence.wait(now_s), presence.present
    return StepStart(start_s, start_s - now_s, np.flatnonzero(~may_begin), capacity)


def presence_memory(presence: Presence | None, waited_s: float) -> dict[str, Memory]:
    """What metrics.csv tells of a step: how many clients were there, and how long the server waited for one."""
    return {} if presence is None else {"availability": {"columns": {"present": presence.count, "waited_s": waited_s}}}
