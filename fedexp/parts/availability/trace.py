"""A CSV file says when each client is there: `client,from_s,to_s`, in simulated seconds since the run began.

A client is there from `from_s` until just before `to_s`; `inf` is for good. One without a line never is. Clients count
from 0, lines come in any order, and those of one client must not overlap. With `repeat_s` the file begins anew every so
many seconds. Legend: L windows, b different beginnings, N clients, n of them.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.part import Positive
from fedexp.files.user_csv import read_numbers
from fedexp.parts.availability.contract import Availability, Timeline

COLUMNS = ("client", "from_s", "to_s")
LIMIT = 2**31  # of clients


@dataclass(frozen=True)
class Windows:
    """When clients are there: `client`, `from_s` and `to_s`, each [L], sorted; those of one client do not touch.

    They begin anew every `repeat_s`; infinity: never.
    """

    client: np.ndarray
    from_s: np.ndarray
    to_s: np.ndarray
    repeat_s: float

    @cached_property
    def beginnings(self) -> np.ndarray:
        """The different times `[b]` at which windows begin, ascending."""
        return np.unique(self.from_s)

    @cached_property
    def keys(self) -> np.ndarray:
        """A number `[L]` for each window, ascending: its client, and within one client the beginning."""
        return self.client * (len(self.beginnings) + 1) + np.searchsorted(self.beginnings, self.from_s, side="right")

    def look(self, owner: np.ndarray, now_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Who of `owner [n]` is there, bool [n], and until when that holds, [n]."""
        cycle_s, next_s = self._cycle(now_s)
        elapsed = np.searchsorted(cycle_s + self.beginnings, now_s, side="right")
        following = np.searchsorted(self.keys, owner * (len(self.beginnings) + 1) + elapsed, side="right")
        first, end = (np.searchsorted(self.client, owner, side=side) for side in ("left", "right"))
        from_s, to_s = np.append(self.from_s, np.inf), np.append(self.to_s, np.inf)
        departure_s = cycle_s + to_s[following - 1]
        present = (following > first) & (departure_s > now_s)
        runs_on = present & (to_s[following - 1] == self.repeat_s) & (from_s[first] == 0)  # into the next cycle
        departure_s[runs_on] = (next_s + np.where(to_s == self.repeat_s, np.inf, to_s))[first[runs_on]]
        arrival_s = np.where(
            following < end, cycle_s + from_s[following], next_s + np.where(first < end, from_s[first], np.inf)
        )
        return present, np.where(present, departure_s, arrival_s)

    def _cycle(self, now_s: float) -> tuple[float, float]:
        """When the file began last, and when it begins next."""
        if np.isinf(self.repeat_s):
            return 0.0, np.inf
        number = now_s // self.repeat_s
        number += (number + 1) * self.repeat_s <= now_s  # what the division rounded away
        return number * self.repeat_s, (number + 1) * self.repeat_s


class AvailabilityTrace(Availability):
    """The windows of a file."""

    changes = True

    path: Path
    repeat_s: Annotated[float, Positive] | None = None
    interrupts: bool = True

    def refuse(self, clients: int | None) -> None:
        last = int(self._windows.client.max())
        if clients is not None and last >= clients:
            raise ConfigError(
                f"availability.path={self.path} must hold clients from 0 to {clients - 1}, got client {last}; remove "
                "its lines or raise scenario.clients"
            )

    def timeline(self, clients: int, seed: int) -> Timeline:
        self.refuse(clients)
        return self._windows.look

    @cached_property
    def _windows(self) -> Windows:
        return read_windows(self.path, np.inf if self.repeat_s is None else self.repeat_s)


def read_windows(path: Path, repeat_s: float) -> Windows:
    """Reads and checks a file; windows of a client that touch are made one.

    Raises:
        ConfigError: the file is missing, has other columns, or holds windows that cannot be.
    """
    table = read_numbers(path, "availability.path", COLUMNS)
    valid = (table["client"] >= 0) & (table["client"] < LIMIT) & (table["client"] % 1 == 0)
    valid &= (table["from_s"] >= 0) & (table["from_s"] < table["to_s"])
    bad = table.index[~valid]
    if len(bad) or not len(table):
        raise ConfigError(
            f"availability.path={path} line {int(bad[0]) + 2 if len(bad) else 2} must hold a client >= 0, "
            "below 2^31, and 0 <= from_s < to_s; correct it"
        )
    if (late := (table["to_s"] > repeat_s) & np.isfinite(repeat_s)).any():
        raise ConfigError(
            f"availability.path={path} line {int(table.index[late][0]) + 2} must end by availability.repeat_s="
            f"{repeat_s:g}, when the file begins anew; raise repeat_s"
        )
    table = table.sort_values(["client", "from_s"], kind="stable")
    client, from_s, to_s = (table[name].to_numpy() for name in COLUMNS)
    is_same = client[1:] == client[:-1]
    if (overlaps := is_same & (from_s[1:] < to_s[:-1])).any():
        first, second = (int(table.index[1:][overlaps][0]) + 2, int(table.index[:-1][overlaps][0]) + 2)
        raise ConfigError(
            f"availability.path={path} line {max(first, second)} must not overlap with line {min(first, second)}, "
            "of the same client; correct it"
        )
    touches = is_same & (from_s[1:] == to_s[:-1])
    begins, ends = np.append(True, ~touches), np.append(~touches, True)
    return Windows(client[begins].astype(np.int64), from_s[begins], to_s[ends], repeat_s)
