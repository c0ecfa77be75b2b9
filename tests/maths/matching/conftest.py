from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from fedexp.maths.matching.networks import Network


@pytest.fixture
def drawn() -> Callable[..., Network]:
    """Networks of given widths (inputs first, classes last) with normal entries."""

    def draw(widths: tuple[int, ...], seed: int) -> Network:
        rng = np.random.default_rng(seed)
        pairs = list(pairwise(widths))
        return Network(
            tuple(rng.normal(size=(above, below)) for below, above in pairs),
            tuple(rng.normal(size=above) for _, above in pairs),
        )

    return draw
