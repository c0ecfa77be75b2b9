"""PFNM: networks matched layer by layer (Yurochkin et al., ICML 2019, arXiv 1905.12022).

From the last hidden layer down, an atom is [incoming, bias, outgoing] for the first hidden layer and [bias, outgoing]
for the others, whose incoming weights are the outgoing ones of the layer below. Outgoing weights of a layer below the
last are laid out over the global units above; a unit above that the client lacks counts as an observed 0. The variances
are `s` of local and `s0` of global atoms; the precision of an output weight is the client's share of that class over
`s` (a class that nobody has carries no information). Global weights have mean 0, biases 0.1.

Legend: J clients, l units of a client's layer, L units of a global layer, P coordinates of an atom, K classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.maths.matching.atoms import Group, Prior
from fedexp.maths.matching.gains import Buffet
from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.passes import Layer, match_given

BIAS_MEAN = 0.1


@dataclass(frozen=True)
class Variances:
    """One layer's hyperparameters: variance of local atoms, variance of global ones, mass of the popularities."""

    s: float
    s0: float
    gamma: float


def match_networks(
    nets: Sequence[Network],
    share: np.ndarray,
    variances: Sequence[Variances],
    factor: float,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[Network, tuple[Layer, ...]]:
    """The global network and its matched layers, the first hidden one first.

    `share [J, K]` is each client's weight for each class; `variances` has one entry for each hidden layer.
    """
    layers: list[Layer] = []
    for depth in reversed(range(len(variances))):
        layer_variances, above = variances[depth], layers[0] if layers else None
        groups = [
            Group(atoms(net, depth, above, client), precision(net, depth, above, share[client], layer_variances.s))
            for client, net in enumerate(nets)
        ]
        prior = prior_of(groups[0].atoms.shape[1], bias_column(nets[0], depth), layer_variances.s0)
        buffet = Buffet(layer_variances.gamma, factor, len(nets))
        layers.insert(0, match_given(groups, prior, buffet, sweeps, rng))
    biases = np.stack([net.biases[-1] for net in nets])
    return assemble_network(layers, nets[0], output_bias(biases, share, variances[-1])), tuple(layers)


def bias_column(net: Network, depth: int) -> int:
    """The column of the bias in an atom of this hidden layer."""
    return net.weights[0].shape[1] if depth == 0 else 0


def atoms(net: Network, depth: int, above: Layer | None, client: int) -> np.ndarray:
    """A client's atoms of one hidden layer, `[l, P]`."""
    outgoing = net.weights[depth + 1].T
    if above is not None:
        spread = np.zeros((len(outgoing), len(above.atoms)))
        spread[:, above.assigned[client]] = outgoing
        outgoing = spread
    incoming = [net.weights[0]] if depth == 0 else []
    return np.hstack([*incoming, net.biases[depth][:, None], outgoing])


def precision(net: Network, depth: int, above: Layer | None, share: np.ndarray, s: float) -> np.ndarray:
    """The precision `[P]` of a client's atoms; `share [K]` is its weight for each class."""
    outgoing = share if above is None else np.ones(len(above.atoms))
    return np.concatenate([np.ones(bias_column(net, depth) + 1), outgoing]) / s


def prior_of(coordinates: int, bias: int, s0: float) -> Prior:
    """The prior of a layer's global atoms."""
    mean = np.zeros(coordinates)
    mean[bias] = BIAS_MEAN
    return Prior(mean, np.full(coordinates, 1 / s0))


def output_bias(biases: np.ndarray, share: np.ndarray, variances: Variances) -> np.ndarray:
    """The posterior mean `[K]` of the output biases `[J, K]`, given the clients' `share [J, K]`."""
    prior = 1 / variances.s0
    return ((share * biases).sum(axis=0) / variances.s + BIAS_MEAN * prior) / (share.sum(axis=0) / variances.s + prior)


def assemble_network(layers: Sequence[Layer], like: Network, output: np.ndarray) -> Network:
    """The network that the layers' global atoms make, with the output biases `output [K]`."""
    bias = [bias_column(like, depth) for depth in range(len(layers))]
    incoming = layers[0].atoms[:, : bias[0]]
    outgoing = [layer.atoms[:, column + 1 :].T for layer, column in zip(layers, bias, strict=True)]
    biases = [layer.atoms[:, column] for layer, column in zip(layers, bias, strict=True)]
    return Network((incoming, *outgoing), (*biases, output))
