"""What an assignment gains in log posterior, up to terms that are the same for every assignment.

Yurochkin et al., "Bayesian Nonparametric Federated Learning of Neural Networks" (ICML 2019, arXiv 1905.12022), and
"Statistical Model Aggregation via Parameter Matching" (NeurIPS 2019, arXiv 1911.00218). With a = mean / variance of the
prior, A = 1 / variance, T and Q the sums of a global atom (see `GlobalAtoms`), q the precision of the local atom v:

    existing   sum_p (a + T + q v)^2 / (A + Q + q) - (a + T)^2 / (A + Q)
    new        sum_p (a + q v)^2 / (A + q) - a^2 / A

Twice the logarithm of the density, less a term that depends on v alone; squares are expanded, so that all pairs take
two matrix products. Both sources put a Beta-Bernoulli prior of mass gamma on the popularities m of J clients:

    existing   F log(m / (J - m))
    i-th new   2 log(gamma / J) - 2 log(i)

F is 2 in both texts; PFNM's published code has 1. As in that code, m counts at most 10 inside the logarithm, and new
atoms are made up to 700 in all.

Legend: J clients, l atoms of a client, L global atoms, P coordinates.
"""

from dataclasses import dataclass

import numpy as np

from fedexp.maths.matching.atoms import GlobalAtoms, Group, Prior

POPULARITY_CAP = 10
ATOMS_CAP = 700


@dataclass(frozen=True)
class Buffet:
    """The prior of popularities: `mass` is gamma, `factor` is F, `clients` is J."""

    mass: float
    factor: float
    clients: int

    def existing(self, popularity: np.ndarray) -> np.ndarray:
        """Gains `[L]` of joining global atoms of these popularities `[L]`, the client's own atoms not counted."""
        counted = np.minimum(popularity, POPULARITY_CAP)
        return self.factor * np.log(counted / (self.clients - counted))

    def new(self, count: int) -> np.ndarray:
        """Gains `[count]` of the first, second, ... new atom."""
        return 2 * np.log(self.mass / self.clients) - 2 * np.log(np.arange(1, count + 1))


def count_new_atoms(units: int, atoms: int) -> int:
    """How many new atoms a client may make: at least one, and enough for every unit."""
    return max(min(units, max(ATOMS_CAP - atoms, 1)), units - atoms)


def gains_of_existing(matched: GlobalAtoms, group: Group, prior: Prior) -> np.ndarray:
    """Gains `[l, L]` of matching each local atom with each global one."""
    numerator = prior.mean * prior.precision + matched.total
    before = prior.precision + matched.precision
    after = before + group.precision
    linear = 2 * numerator * group.precision / after
    quadratic = group.precision**2 / after
    alone = (numerator**2 * (1 / after - 1 / before)).sum(axis=1)
    return group.atoms @ linear.T + group.atoms**2 @ quadratic.T + alone


def gains_of_new(group: Group, prior: Prior) -> np.ndarray:
    """Gains `[l]` of making each local atom a new global one."""
    weighted = prior.mean * prior.precision
    joint = (weighted + group.precision * group.atoms) ** 2 / (prior.precision + group.precision)
    return (joint - weighted * prior.mean).sum(axis=1)


def volumes_of_existing(matched: GlobalAtoms, group: Group, prior: Prior) -> np.ndarray:
    """What SPAHM adds, `[L]`: log determinants, which matter once variances are estimated."""
    before = prior.precision + matched.precision
    return np.log(before / (before + group.precision)).sum(axis=1)


def volume_of_new(group: Group, prior: Prior) -> float:
    """What SPAHM adds for a new atom."""
    return float(np.log(prior.precision / (prior.precision + group.precision)).sum())
