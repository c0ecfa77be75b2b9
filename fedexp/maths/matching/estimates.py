"""SPAHM: a layer is matched while its hyperparameters are estimated (Yurochkin et al. 2019, arXiv 1911.00218).

The start is variances of 1 and the mean of all local atoms. After pass 0 and after every sweep (empirical Bayes, by
coordinate; S_i is the sum and Q_i the sum of squares of the m_i local atoms in the global atom i):

    mean                    mean_i S_i / m_i
    variance of local       sum_i (Q_i - S_i^2 / m_i) / (local atoms - L)
    variance of global      mean_i (S_i / m_i - mean)^2 - variance of local * mean_i 1 / m_i

The last line is that of the authors' code; the paper (section 4.1) has the sum of the 1 / m_i instead of their mean.
Both variances are at least 1e-10. Where nothing was merged (L equals the number of local atoms) nothing can be
estimated, and all three stay. In algorithm 6 of the aggregation thesis a step draws one random client; here, as in the
authors' code, a sweep visits all of them in a random order.

Legend: J clients, n local atoms of all of them, L global atoms, P coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.maths.matching import pfnm
from fedexp.maths.matching.atoms import GlobalAtoms, Group, Prior, combine_groups
from fedexp.maths.matching.gains import Buffet, gains_of_existing, gains_of_new, volume_of_new, volumes_of_existing
from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.passes import Assignment, Gain, Layer, first_pass, sweep

LEAST_VARIANCE = 1e-10
FACTOR = 2.0  # of the popularities' log odds


@dataclass(frozen=True)
class Hyperparameters:
    """The mean `[P]` and variance `[P]` of global atoms, and the variance `[P]` of local ones around them."""

    mean: np.ndarray
    variance: np.ndarray
    local_variance: np.ndarray

    @property
    def prior(self) -> Prior:
        """The distribution of the global atoms."""
        return Prior(self.mean, 1 / self.variance)

    def groups(self, atoms: Sequence[np.ndarray]) -> list[Group]:
        """Each client's atoms `[l, P]` with their precision."""
        return [Group(client_atoms, 1 / self.local_variance) for client_atoms in atoms]

    @property
    def gain(self) -> Gain:
        """What an assignment gains; with variances that change, determinants count as well."""
        prior = self.prior

        def gain(matched: GlobalAtoms, group: Group) -> tuple[np.ndarray, np.ndarray]:
            existing = gains_of_existing(matched, group, prior) + volumes_of_existing(matched, group, prior)
            return existing, gains_of_new(group, prior) + volume_of_new(group, prior)

        return gain


def match_estimated(
    atoms: Sequence[np.ndarray], buffet: Buffet, sweeps: int, rng: np.random.Generator
) -> tuple[Layer, Hyperparameters]:
    """Pass 0 and this many sweeps over the clients' `atoms [l, P]`; global atoms are means under the last estimates."""
    all_atoms = np.concatenate(atoms)
    unit_variance = np.ones(all_atoms.shape[1])
    hyper = Hyperparameters(all_atoms.mean(axis=0), unit_variance, unit_variance)
    assigned: Assignment = first_pass(hyper.groups(atoms), hyper.gain, buffet)
    hyper = estimate_hyperparameters(hyper, all_atoms, np.concatenate(assigned))
    for _ in range(sweeps):
        assigned = sweep(hyper.groups(atoms), assigned, hyper.gain, buffet, rng.permutation(len(atoms)))
        hyper = estimate_hyperparameters(hyper, all_atoms, np.concatenate(assigned))
    matched = combine_groups(hyper.groups(atoms), assigned)
    return Layer(matched.mean(hyper.prior), matched.popularity, assigned), hyper


def estimate_hyperparameters(hyper: Hyperparameters, atoms: np.ndarray, positions: np.ndarray) -> Hyperparameters:
    """The hyperparameters estimated from local atoms `[n, P]` assigned to the global atoms `positions [n]`."""
    popularity = np.bincount(positions)[:, None]
    if len(popularity) == len(atoms):
        return hyper
    center = np.zeros((len(popularity), atoms.shape[1]))
    np.add.at(center, positions, atoms)
    center /= popularity
    local = ((atoms - center[positions]) ** 2).sum(axis=0) / (len(atoms) - len(popularity))
    mean = center.mean(axis=0)
    spread = ((center - mean) ** 2).mean(axis=0) - local * (1 / popularity).mean()
    return Hyperparameters(mean, np.maximum(spread, LEAST_VARIANCE), np.maximum(local, LEAST_VARIANCE))


def match_one_layer(
    nets: Sequence[Network], share: np.ndarray, gamma: float, sweeps: int, rng: np.random.Generator
) -> tuple[Network, Layer]:
    """The global network of networks with one hidden layer, and its matched layer; atoms are as in PFNM.

    Output biases, which no atom holds, are averaged by `share [J]`.
    """
    local = [pfnm.atoms(net, 0, None, client) for client, net in enumerate(nets)]
    layer, _ = match_estimated(local, Buffet(gamma, FACTOR, len(nets)), sweeps, rng)
    bias = share @ np.stack([net.biases[-1] for net in nets])
    return pfnm.assemble_network([layer], nets[0], bias), layer
