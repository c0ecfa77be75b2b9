"""The units of the global network that each client holds, traced from round to round.

A client that took part in the last matching holds the units that its own were matched to. The network is matched anew
in every round, so a unit of an absent client is traced through the participants that were given the same unit: it
becomes the global unit that most of theirs were matched to, one to one (an assignment problem). A unit that no
participant was given, or that lost its place to another, is gone. Gone units, and all units of a client never seen, are
replaced by the most popular units that the client does not hold.

Legend: n clients remembered, C participants, l units of a client's layer, L units of a global layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

GONE = -1

Units = tuple[np.ndarray, ...]  # by hidden layer


@dataclass(frozen=True)
class Seats:
    """`owner [n]` ascending; by hidden layer `held_units [n, l]` and `popularity [L]`, how many hold a unit."""

    owner: np.ndarray
    held: Units
    popularity: Units

    @staticmethod
    def load(memory: dict[str, Any], widths: Sequence[int]) -> "Seats":
        """Loads the assignment from a memory; at first no client has units and the global network has `widths`."""
        if "owner" not in memory:
            nobody = tuple(np.zeros((0, width), dtype=np.int64) for width in widths)
            return Seats(np.zeros(0, dtype=np.int64), nobody, tuple(np.zeros(width, np.int64) for width in widths))
        held, popularity = (tuple(each.numpy() for each in memory[name]) for name in ("held", "popularity"))
        return Seats(memory["owner"].numpy(), held, popularity)

    def save(self) -> dict[str, Any]:
        """The assignment as tensors, for a checkpoint."""
        held, popularity = (tuple(map(torch.from_numpy, each)) for each in (self.held, self.popularity))
        return {"owner": torch.from_numpy(self.owner), "held": held, "popularity": popularity}

    def units(self, owner: np.ndarray) -> Units:
        """The global units `[C, l]` of the clients `owner [C]`, by hidden layer."""
        known = np.isin(owner, self.owner)
        place = np.searchsorted(self.owner, owner[known])
        given = []
        for held, popularity in zip(self.held, self.popularity, strict=True):
            seats = np.full((len(owner), held.shape[1]), GONE)
            seats[known] = held[place]
            given.append(filled(seats, popularity))
        return tuple(given)

    def after(self, owner: np.ndarray, given: Units, matched: Units, popularity: Units) -> "Seats":
        """The assignment in a new network: participants began with `start_units` and hold `matched [C, l]` now.

        All but `owner` are by hidden layer; `popularity [L]` is that of the new network.
        """
        absent = ~np.isin(self.owner, owner)
        everybody = np.concatenate([self.owner[absent], owner])
        order = np.argsort(everybody, kind="stable")
        held = tuple(
            np.concatenate([followed(old[absent], begun, now), now])[order]
            for old, begun, now in zip(self.held, given, matched, strict=True)
        )
        return Seats(everybody[order], held, popularity)


def filled(held: np.ndarray, popularity: np.ndarray) -> np.ndarray:
    """`held_units [C, l]` with missing units replaced by the most popular others of `popularity [L]`."""
    seats, order = held.copy(), np.argsort(-popularity, kind="stable")
    for row in seats:
        gone = row == GONE
        if gone.any():
            row[gone] = order[~np.isin(order, row)][: gone.sum()]
    return seats


def followed(held: np.ndarray, given: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Units `[n, l]` of the new network that `held_units [n, l]` of the old one became; MISSING if none.

    `given [C, l]` are the old units that the participants began with, `matched [C, l]` where those are now.
    """
    old, new = (int(max(units.max(initial=GONE) for units in pair)) + 1 for pair in ((held, given), (matched,)))
    votes = np.zeros((old, new), dtype=np.int64)
    np.add.at(votes, (given.ravel(), matched.ravel()), 1)
    before, after = linear_sum_assignment(votes, maximize=True)
    place = np.full(old + 1, GONE)  # index GONE finds the last entry
    named = votes[before, after] > 0
    place[before[named]] = after[named]
    return place[held]
