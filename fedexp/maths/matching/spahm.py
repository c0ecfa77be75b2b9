"""SPAHM on networks of one hidden layer: atoms as in PFNM, variances estimated, the same for all classes."""

from collections.abc import Sequence

import numpy as np

from fedexp.maths.matching.estimates import match_estimated
from fedexp.maths.matching.gains import Buffet
from fedexp.maths.matching.layers import Layer
from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.pfnm import assemble_network, atoms

FACTOR = 2.0  # of the popularities' log odds


def match_one_layer(
    nets: Sequence[Network], share: np.ndarray, gamma: float, sweeps: int, rng: np.random.Generator
) -> tuple[Network, Layer]:
    """The global network and its matched layer. Output biases, which no atom holds, are averaged by `share [J]`."""
    local = [atoms(net, 0, None, client) for client, net in enumerate(nets)]
    layer, _ = match_estimated(local, Buffet(gamma, FACTOR, len(nets)), sweeps, rng)
    bias = share @ np.stack([net.biases[-1] for net in nets])
    return assemble_network([layer], nets[0], bias), layer
