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

MISSING = -1

Units = tuple[np.ndarray, ...]  # by hidden layer


@dataclass(frozen=True)
class UnitAssignment:
    """`owner [n]` ascending; by hidden layer `held_units [n, l]` and `popularity [L]`, how many hold a unit."""

    owner: np.ndarray
    held_units: Units
    popularity: Units

    @staticmethod
    def load(memory: dict[str, Any], widths: Sequence[int]) -> "UnitAssignment":
        """Loads the assignment from a memory; at first no client has units and the global network has `widths`."""
        if "owner" not in memory:
            nobody = tuple(np.zeros((0, width), dtype=np.int64) for width in widths)
            return UnitAssignment(
                np.zeros(0, dtype=np.int64), nobody, tuple(np.zeros(width, np.int64) for width in widths)
            )
        held_units, popularity = (tuple(layer.numpy() for layer in memory[name]) for name in ("held", "popularity"))
        return UnitAssignment(memory["owner"].numpy(), held_units, popularity)

    def save(self) -> dict[str, Any]:
        """The assignment as tensors, for a checkpoint."""
        held_units, popularity = (tuple(map(torch.from_numpy, arrays)) for arrays in (self.held_units, self.popularity))
        return {"owner": torch.from_numpy(self.owner), "held": held_units, "popularity": popularity}

    def units(self, owner: np.ndarray) -> Units:
        """The global units `[C, l]` of the clients `owner [C]`, by hidden layer."""
        remembered = np.isin(owner, self.owner)
        position = np.searchsorted(self.owner, owner[remembered])
        client_units = []
        for held_units, popularity in zip(self.held_units, self.popularity, strict=True):
            layer_units = np.full((len(owner), held_units.shape[1]), MISSING)
            layer_units[remembered] = held_units[position]
            client_units.append(fill_missing(layer_units, popularity))
        return tuple(client_units)

    def after(self, owner: np.ndarray, start_units: Units, matched: Units, popularity: Units) -> "UnitAssignment":
        """The assignment in a new network: participants began with `start_units` and hold `matched [C, l]` now.

        All but `owner` are by hidden layer; `popularity [L]` is that of the new network.
        """
        absent = ~np.isin(self.owner, owner)
        everybody = np.concatenate([self.owner[absent], owner])
        order = np.argsort(everybody, kind="stable")
        held_units = tuple(
            np.concatenate([trace_units(old[absent], start, now), now])[order]
            for old, start, now in zip(self.held_units, start_units, matched, strict=True)
        )
        return UnitAssignment(everybody[order], held_units, popularity)


def fill_missing(held_units: np.ndarray, popularity: np.ndarray) -> np.ndarray:
    """`held_units [C, l]` with missing units replaced by the most popular others of `popularity [L]`."""
    units, order = held_units.copy(), np.argsort(-popularity, kind="stable")
    for row in units:
        missing = row == MISSING
        if missing.any():
            row[missing] = order[~np.isin(order, row)][: missing.sum()]
    return units


def trace_units(held_units: np.ndarray, start_units: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Units `[n, l]` of the new network that `held_units [n, l]` of the old one became; MISSING if none.

    `start_units [C, l]` are the old units that the participants began with, `matched [C, l]` where those are now.
    """
    old, new = (
        int(max(units.max(initial=MISSING) for units in pair)) + 1 for pair in ((held_units, start_units), (matched,))
    )
    votes = np.zeros((old, new), dtype=np.int64)
    np.add.at(votes, (start_units.ravel(), matched.ravel()), 1)
    before, after = linear_sum_assignment(votes, maximize=True)
    new_unit = np.full(old + 1, MISSING)  # index GONE finds the last entry
    named = votes[before, after] > 0
    new_unit[before[named]] = after[named]
    return new_unit[held_units]
