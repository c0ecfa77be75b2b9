"""Passes over the clients: each is assigned to the global atoms as a whole, by the Hungarian algorithm.

Pass 0 takes the clients from the largest to the smallest; the first one's atoms become the first global ones. A sweep
takes them in a random order: a client's atoms are removed, global atoms left without any are deleted, and the client is
matched again.
New atoms are numbered in the order of the client's units, whatever columns the solver gave them.

Legend: J clients, l atoms of a client, L global atoms, P coordinates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from fedexp.maths.matching.atoms import GlobalAtoms, Group, Prior, combine_groups
from fedexp.maths.matching.gains import Buffet, count_new_atoms, gains_of_existing, gains_of_new

Assignment = tuple[np.ndarray, ...]  # per client, the global atom of each of its own, int64 [l]
Gain = Callable[[GlobalAtoms, Group], tuple[np.ndarray, np.ndarray]]  # of existing atoms [l, L], of new ones [l]


@dataclass(frozen=True)
class Layer:
    """`atoms [L, P]`, `popularity [L]` (how many local atoms are in each) and the places of each client's atoms."""

    atoms: np.ndarray
    popularity: np.ndarray
    assigned: Assignment


def assign(matched: GlobalAtoms, group: Group, gain: Gain, buffet: Buffet) -> np.ndarray:
    """The best positions `[l]` of a client's atoms; positions from L on are new."""
    atoms, units = len(matched.popularity), len(group.atoms)
    existing, new = gain(matched, group)
    new_prior = buffet.new(count_new_atoms(units, atoms))
    table = np.hstack([existing + buffet.existing(matched.popularity), new[:, None] + new_prior])
    _, positions = linear_sum_assignment(table, maximize=True)
    is_new = positions >= atoms
    positions[is_new] = atoms + np.arange(is_new.sum())
    return positions


def first_pass(groups: Sequence[Group], gain: Gain, buffet: Buffet) -> Assignment:
    """Matches every client once, the largest first."""
    order = np.argsort([-len(group.atoms) for group in groups], kind="stable")
    matched = GlobalAtoms.empty(groups[0].atoms.shape[1])
    assigned = {}
    for client in order.tolist():
        assigned[client] = assign(matched, groups[client], gain, buffet)
        matched = matched.with_group(groups[client], assigned[client])
    return tuple(assigned[client] for client in range(len(groups)))


def sweep(groups: Sequence[Group], assigned: Assignment, gain: Gain, buffet: Buffet, order: np.ndarray) -> Assignment:
    """Matches every client again, in the order `[J]`."""
    matched, assignment = combine_groups(groups, assigned), list(assigned)
    for client in order.tolist():
        remaining = matched.without_group(groups[client], assignment[client])
        alive = remaining.popularity > 0
        number = np.cumsum(alive) - 1
        matched, assignment = remaining.where(alive), [number[positions] for positions in assignment]
        assignment[client] = assign(matched, groups[client], gain, buffet)
        matched = matched.with_group(groups[client], assignment[client])
    return tuple(assignment)


def match_given(groups: Sequence[Group], prior: Prior, buffet: Buffet, sweeps: int, rng: np.random.Generator) -> Layer:
    """PFNM's matching with given variances: pass 0 and this many sweeps; the global atoms are posterior means."""

    def gain(matched: GlobalAtoms, group: Group) -> tuple[np.ndarray, np.ndarray]:
        return gains_of_existing(matched, group, prior), gains_of_new(group, prior)

    assigned = first_pass(groups, gain, buffet)
    for _ in range(sweeps):
        assigned = sweep(groups, assigned, gain, buffet, rng.permutation(len(groups)))
    matched = combine_groups(groups, assigned)
    return Layer(matched.mean(prior), matched.popularity, assigned)
