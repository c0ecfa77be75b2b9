"""Traces of a fleet: a CSV with the header `client,round,bandwidth_mbit,compute_samples_per_s[,upload_mbit]`.

A line is valid from its round on until the client's next line; the first line is valid before it, too. Rounds count
from 1, clients from 0. Legend: L lines, n clients.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.files.user_csv import read_numbers

LIMIT = 2**31  # of clients and rounds: what both make up together fits into int64
COLUMNS = ("client", "round", "bandwidth_mbit", "compute_samples_per_s")
UPLINK = "upload_mbit"


@dataclass(frozen=True)
class Trace:
    """Lines sorted by client and round: `client`, `round`, `bandwidth` (Mbit/s) and `speed` (examples/s), each [L].

    `uplink [L]` is the bandwidth of what clients send, None if it is the same.
    """

    path: Path
    client: np.ndarray
    round: np.ndarray
    bandwidth: np.ndarray
    speed: np.ndarray
    uplink: np.ndarray | None = None

    def at(self, owner: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Bandwidth, speed and bandwidth of uploads in a round, each `[n]`, of the clients `owner [n]`."""
        first = np.searchsorted(self.client, owner)
        span = int(max(self.round.max(), number)) + 2
        last = np.searchsorted(self.client * span + self.round, owner * span + number, side="right") - 1
        line = np.maximum(first, last)
        unknown = owner[self.client[np.minimum(line, len(self.client) - 1)] != owner]
        if len(unknown):
            self._refuse_unknown(unknown)
        return self.bandwidth[line], self.speed[line], None if self.uplink is None else self.uplink[line]

    def require(self, clients: int) -> None:
        """Raises ConfigError unless every client has a line."""
        unknown = np.setdiff1d(np.arange(clients), self.client)
        if len(unknown):
            self._refuse_unknown(unknown)

    def _refuse_unknown(self, unknown: np.ndarray) -> None:
        raise ConfigError(
            f"fleet.trace={self.path} must have a line for every client, but {len(unknown)} have none, the first is "
            f"client {unknown[0]}; add lines or lower scenario.clients"
        )


def read_trace(path: Path) -> Trace:
    """Reads and checks a trace.

    Raises:
        ConfigError: the file is missing, has other columns, or holds a value that cannot be.
    """
    table = read_numbers(path, "fleet.trace", COLUMNS, (UPLINK,))
    valid_keys = (table["client"] >= 0) & (table["round"] >= 1) & (table[["client", "round"]] % 1 == 0).all(axis=1)
    valid_keys &= (table[["client", "round"]] < LIMIT).all(axis=1)
    rates = table.drop(columns=["client", "round"])
    bad = table.index[~(valid_keys & (rates > 0).all(axis=1) & np.isfinite(rates).all(axis=1))]
    if len(bad) or not len(table):
        line = int(bad[0]) + 2 if len(bad) else 2
        raise ConfigError(
            f"fleet.trace={path} line {line} must hold a client >= 0 and a round >= 1, both below 2^31, and "
            "positive rates; correct it"
        )
    if (twice := table.duplicated(["client", "round"])).any():
        line = int(table.index[twice][0]) + 2
        raise ConfigError(f"fleet.trace={path} line {line} must be the only one of its client and round; correct it")
    table = table.sort_values(["client", "round"], kind="stable")
    client, number, bandwidth, speed, *uplink = (table[name].to_numpy() for name in table.columns)
    return Trace(path, client.astype(np.int64), number.astype(np.int64), bandwidth, speed, *uplink)
