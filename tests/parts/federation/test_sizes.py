from typing import Literal

import numpy as np
import pytest

from fedexp.parts.federation.sizes import Sizes


@pytest.mark.parametrize(
    ("growth", "examples", "sizes"),
    [
        ("linear", 60, [6, 12, 18, 24]),
        ("square", 60, [2, 8, 18, 32]),
        ("exponential", 848, [27, 74, 201, 546]),  # e + e^2 + e^3 + e^4 = 84.79
    ],
)
def test_sizes_by_hand(growth: Literal["linear", "square", "exponential"], examples: int, sizes: list[int]):
    partition = Sizes(clients=4, growth=growth).split(np.zeros(examples, int), None, 1, np.random.default_rng(0))
    assert partition.sizes.tolist() == sizes


def test_many_clients_do_not_overflow():
    federation = Sizes(clients=5000, growth="exponential")
    sizes = federation.split(np.zeros(10**6, int), None, 1, np.random.default_rng(0)).sizes
    assert sizes.sum() == 10**6
    assert sizes[-1] / sizes[-2] == pytest.approx(np.e, rel=1e-4)
