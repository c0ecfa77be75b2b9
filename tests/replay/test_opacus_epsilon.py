"""The epsilons in the names of the table opacus_mnist: those of today's commands, by the conversion before 2020."""

import math

import numpy as np
import pytest

from fedexp.parts.privacy.sampled_gaussian import ORDERS, _divergence
from fedexp.replay import table

RATE, STEPS, DELTA = 240 / 60_000, 60_000 // 240, 1e-5  # of today's README, an epoch


def settings(name: str) -> tuple[float, int]:
    """The noise multiplier and the epochs of a cell."""
    cell = next(cell for cell in table.load("opacus_mnist").cells if cell.name == name)
    said = dict(word.split("=") for word in cell.overrides)
    return float(said["privacy.noise_multiplier"]), int(said["rounds"])


@pytest.mark.parametrize(
    ("name", "published"), [("epsilon 1.16", 1.160), ("epsilon 2.91", 2.905), ("epsilon 6.86", 6.860)]
)
def test_the_published_epsilon_is_that_of_the_old_conversion(name: str, published: float):
    """rho(alpha) + log(1 / delta) / (alpha - 1), least over alpha (Mironov 2017, arXiv 1702.07476, proposition 3)."""
    noise, epochs = settings(name)
    places = tuple(place for place, order in enumerate(ORDERS) if order >= 2)
    spent = epochs * STEPS * _divergence(places, RATE, noise)
    least = min(spent + math.log(1 / DELTA) / (np.array(ORDERS)[list(places)] - 1))
    assert least == pytest.approx(published, abs=0.001)
