import numpy as np
import pytest

from fedexp.parts.federation.iid import IID
from fedexp.parts.federation.power_law import PowerLaw


@pytest.mark.parametrize(
    ("examples", "exponent", "sizes"),
    [
        (11, 1.0, [6, 3, 2]),  # 1 : 1/2 : 1/3
        (49, 2.0, [36, 9, 4]),  # 1 : 1/4 : 1/9
        (12, 1.0, [7, 3, 2]),  # 6.55, 3.27, 2.18: the one that is left goes to .55
        (10, 1e9, [10, 0, 0]),
    ],
)
def test_sizes_by_hand(examples: int, exponent: float, sizes: list[int]):
    labels, federation = np.zeros(examples, int), PowerLaw(clients=3, exponent=exponent)
    assert federation.split(labels, None, 1, np.random.default_rng(0)).sizes.tolist() == sizes


def test_exponent_zero_is_equal_sizes():
    labels = np.arange(103) % 4
    flat = PowerLaw(clients=10, exponent=0).split(labels, None, 4, np.random.default_rng(0))
    assert flat.sizes.tolist() == IID(clients=10).split(labels, None, 4, np.random.default_rng(0)).sizes.tolist()


def test_on_a_doubly_logarithmic_scale_sizes_lie_on_a_line():
    sizes = PowerLaw(clients=50, exponent=1.5).split(np.zeros(10**6, int), None, 1, np.random.default_rng(0)).sizes
    slope, _ = np.polyfit(np.log(np.arange(1, 51)), np.log(sizes), 1)
    assert slope == pytest.approx(-1.5, abs=1e-3)
