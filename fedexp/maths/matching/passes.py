"""Passes over the clients: each is assigned to the global atoms as a whole, by the Hungarian algorithm.

Pass 0 takes the clients from the largest to the smallest; the first one's atoms become the first global ones. A sweep
takes them in a random order: a client's atoms are removed, global atoms left without any are deleted, and the client is
matched again.
New atoms are numbered in the order of the client's units, whatever columns the solver gave them.

Legend: J clients, l atoms of a client, L global atoms.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from fedexp.maths.matching.atoms import Group, Matched, gathered
from fedexp.maths.matching.gains import Buffet, places_for_new

Assigned = tuple[np.ndarray, ...]  # per client, the global atom of each of its own, int64 [l]
Gain = Callable[[Matched, Group], tuple[np.ndarray, np.ndarray]]  # of existing atoms [l, L], of new ones [l]


def assign(matched: Matched, group: Group, gain: Gain, buffet: Buffet) -> np.ndarray:
    """The best positions `[l]` of a client's atoms; positions from L on are new."""
    atoms, units = len(matched.popularity), len(group.atoms)
    existing, new = gain(matched, group)
    made = buffet.new(places_for_new(units, atoms))
    table = np.hstack([existing + buffet.existing(matched.popularity), new[:, None] + made])
    _, places = linear_sum_assignment(table, maximize=True)
    fresh = places >= atoms
    places[fresh] = atoms + np.arange(fresh.sum())
    return places


def first_pass(groups: Sequence[Group], gain: Gain, buffet: Buffet) -> Assigned:
    """Matches every client once, the largest first."""
    order = np.argsort([-len(group.atoms) for group in groups], kind="stable")
    matched = Matched.nothing(groups[0].atoms.shape[1])
    assigned = {}
    for client in order.tolist():
        assigned[client] = assign(matched, groups[client], gain, buffet)
        matched = matched.joined(groups[client], assigned[client])
    return tuple(assigned[client] for client in range(len(groups)))


def sweep(groups: Sequence[Group], assigned: Assigned, gain: Gain, buffet: Buffet, order: np.ndarray) -> Assigned:
    """Matches every client again, in the order `[J]`."""
    matched, places = gathered(groups, assigned), list(assigned)
    for client in order.tolist():
        others = matched.without(groups[client], places[client])
        alive = others.popularity > 0
        number = np.cumsum(alive) - 1
        matched, places = others.where(alive), [number[place] for place in places]
        places[client] = assign(matched, groups[client], gain, buffet)
        matched = matched.joined(groups[client], places[client])
    return tuple(places)
