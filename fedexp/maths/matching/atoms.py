"""Atoms of one client, the global atoms that they are matched to, and the prior.

An atom is the vector of a hidden unit's weights. A precision is an inverse variance, one per coordinate.
Legend: J clients, l atoms of a client, L global atoms, P coordinates of an atom.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Group:
    """One client's atoms `[l, P]` and the precision `[P]` with which they measure the global atoms."""

    atoms: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True)
class Prior:
    """The normal distribution of global atoms before matching: mean `[P]` and precision `[P]`."""

    mean: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True)
class GlobalAtoms:
    """Sufficient statistics of the global atoms, given the local atoms matched to them; the prior is left out.

    `total [L, P]` sums precision times atom, `precision [L, P]` the precisions, `popularity [L]` counts the atoms.
    """

    total: np.ndarray
    precision: np.ndarray
    popularity: np.ndarray

    @staticmethod
    def empty(coordinates: int) -> "GlobalAtoms":
        """No global atom yet."""
        return GlobalAtoms(np.zeros((0, coordinates)), np.zeros((0, coordinates)), np.zeros(0, dtype=np.int64))

    def with_group(self, group: Group, assigned: np.ndarray) -> "GlobalAtoms":
        """Adds a client's atoms at the positions `assigned [l]`; positions from L on are new."""
        grown = max(len(self.popularity), int(assigned.max(initial=-1)) + 1) - len(self.popularity)
        total, precision = (np.pad(entry, ((0, grown), (0, 0))) for entry in (self.total, self.precision))
        popularity = np.pad(self.popularity, (0, grown))
        total[assigned] += group.precision * group.atoms
        precision[assigned] += group.precision
        popularity[assigned] += 1
        return GlobalAtoms(total, precision, popularity)

    def without_group(self, group: Group, assigned: np.ndarray) -> "GlobalAtoms":
        """Removes a client's atoms from the positions `assigned [l]`; an empty position stays, with popularity 0."""
        less = GlobalAtoms(self.total.copy(), self.precision.copy(), self.popularity.copy())
        less.total[assigned] -= group.precision * group.atoms
        less.precision[assigned] -= group.precision
        less.popularity[assigned] -= 1
        return less

    def where(self, keep: np.ndarray) -> "GlobalAtoms":
        """The global atoms that the mask `keep [L]` names."""
        return GlobalAtoms(self.total[keep], self.precision[keep], self.popularity[keep])

    def mean(self, prior: Prior) -> np.ndarray:
        """The posterior means, `[L, P]`: the weights of the global units."""
        return (prior.mean * prior.precision + self.total) / (prior.precision + self.precision)


def combine_groups(groups: Sequence[Group], assigned: Sequence[np.ndarray]) -> GlobalAtoms:
    """The global atoms of a complete matching; `assigned` holds the positions `[l]` of each client's atoms."""
    matched = GlobalAtoms.empty(groups[0].atoms.shape[1])
    for group, positions in zip(groups, assigned, strict=True):
        matched = matched.with_group(group, positions)
    return matched
