"""PFNM's matching beside its authors' program.

Of github.com/IBM/probabilistic-federated-neural-matching at f44cf4281944fae46cdce1b8bc7cde3e7c44bd70 ran
layer_group_descent of matching/pfnm.py in float64 on these networks: sigma 0.2, sigma0 1.5, gamma 2, it 3, and for the
two layers sigma 0.2 and 0.02. Its order of the clients in a sweep, of np.random.permutation, came from the generator
that the test has.

With `factor` 1, as in its program (the texts have 2), nothing differs: not even the order of the units.
"""

from itertools import pairwise

import numpy as np
import pytest

from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.pfnm import Variances, match_networks

COUNTS = np.array([[4, 1], [2, 3], [1, 5]])  # of each class, at each client
ONE_LAYER = """
-0.5984042553 0.1196808511 0 1.23046875 1.5234375 0.1171875 0.7180851064 0.4787234043 -0.5984042553 -0.4411764706
0.2205882353 0.6617647059 0.6617647059 0.7720588235 0.1102941176 0.1239361702 0.211328125 0.2436170213 0.2875
0.1220588235 -0.2205882353 0.4131355932 0.2363445378 -0.4261363636 0.3040540541 -0.3308823529 0.2309782609 0.625 0.625
-0.3977272727 0.1535714286 0.2568627451
"""
TWO_LAYERS = """
1.23046875 1.5234375 0.1171875 -0.5859375 0.17578125 0.1171875 0.64453125 0.3515625 -0.76171875 -0.5514705882 0
-0.2205882353 0.6617647059 0.7720588235 0.1102941176 0.7720588235 0.6617647059 -0.2205882353 0.211328125 0.152734375
0.211328125 0.06691176471 0.1220588235 0.2875 0.234375 -0.1171875 0.234375 -0.2205882353 0.3308823529 0 0.9375
1.11328125 -0.41015625 0.8823529412 0.5514705882 0.1102941176 -0.17578125 -0.29296875 0.234375 0 0 0 0.05859375
-0.1171875 0 0 0 0.4411764706 0.29296875 -0.1171875 0 0 0 0.5514705882 0 0 0.234375 -0.8823529412 -0.7720588235 0
0.1558774834 0.3115597345 0.2480263158 0.3097039474 0.2480263158 0.1863486842 0.1230853392 0.6343984962 0.8359872611
0.9146341463 0.1143292683 0.7328990228 -0.3337378641 0.8634868421 0 0.48828125 0.1220703125 -0.4464285714 0.2215930451
0.3371162281
"""


def client(number: int, *widths: int) -> Network:
    """A client's network: its number moves the weights, and turns the order of the hidden units."""
    weights, biases, order = [], [], np.arange(widths[0])
    for layer, (below, above) in enumerate(pairwise(widths), start=1):
        positions = np.arange(above * below).reshape(above, below)
        matrix = ((positions**2 * 5 + 3 * layer) % 17 - 8) / 8 + number * (positions % 5) / 8
        following = np.roll(np.arange(above), number) if layer < len(widths) - 1 else np.arange(above)
        weights.append(matrix[following][:, order])
        biases.append((following + layer + number) / 16)
        order = following
    return Network(tuple(weights), tuple(biases))


@pytest.mark.parametrize(
    ("widths", "s", "grown", "theirs"),
    [
        (((3, 3, 2), (3, 4, 2), (3, 3, 2)), (0.2,), (5,), ONE_LAYER),
        (((3, 3, 3, 2), (3, 3, 3, 2), (3, 3, 3, 2)), (0.2, 0.02), (6, 6), TWO_LAYERS),
    ],
)
def test_three_clients(widths: tuple[tuple[int, ...], ...], s: tuple[float, ...], grown: tuple[int, ...], theirs: str):
    nets = [client(number, *sizes) for number, sizes in enumerate(widths)]
    variances = [Variances(variance, 1.5, 2.0) for variance in s]
    matched, _ = match_networks(nets, COUNTS / COUNTS.sum(axis=0), variances, 1.0, 3, np.random.default_rng(4))
    pairs = zip(matched.weights, matched.biases, strict=True)
    ours = np.concatenate([entry.ravel() for pair in pairs for entry in pair])
    assert matched.hidden == grown
    np.testing.assert_allclose(ours, [float(word) for word in theirs.split()], rtol=1e-8, atol=1e-10)
