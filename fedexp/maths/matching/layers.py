"""One matched layer, and PFNM's matching with given variances.

Legend: J clients, l atoms of a client, L global atoms, P coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.maths.matching.atoms import GlobalAtoms, Group, Prior, combine_groups
from fedexp.maths.matching.gains import Buffet, gains_of_existing, gains_of_new
from fedexp.maths.matching.passes import Assignment, first_pass, sweep


@dataclass(frozen=True)
class Layer:
    """`atoms [L, P]`, `popularity [L]` (how many local atoms are in each) and the places of each client's atoms."""

    atoms: np.ndarray
    popularity: np.ndarray
    assigned: Assignment


def match_given(groups: Sequence[Group], prior: Prior, buffet: Buffet, sweeps: int, rng: np.random.Generator) -> Layer:
    """Pass 0 and this many sweeps; the global atoms are posterior means."""

    def gain(matched: GlobalAtoms, group: Group) -> tuple[np.ndarray, np.ndarray]:
        return gains_of_existing(matched, group, prior), gains_of_new(group, prior)

    assigned = first_pass(groups, gain, buffet)
    for _ in range(sweeps):
        assigned = sweep(groups, assigned, gain, buffet, rng.permutation(len(groups)))
    matched = combine_groups(groups, assigned)
    return Layer(matched.mean(prior), matched.popularity, assigned)
