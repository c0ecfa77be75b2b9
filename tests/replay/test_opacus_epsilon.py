"""The epsilons of the table opacus_mnist: the published ones by the old conversion, and those that a run tells."""

import math

import numpy as np
import pytest

from fedexp.parts.privacy.accounting import epsilons
from fedexp.parts.privacy.sampled_gaussian import ORDERS, _divergence
from fedexp.replay import table

RATE, DELTA = 240 / 60_000, 1e-5


def settings(name: str) -> tuple[float, int]:
    """The noise multiplier and the steps of a cell."""
    cell = next(cell for cell in table.load("opacus_mnist").cells if cell.name == name)
    said = dict(word.split("=") for word in cell.overrides)
    return float(said["privacy.noise_multiplier"]), int(said["rounds"]) * (60_000 // int(said["local.batch_size"]))


@pytest.mark.parametrize(
    ("name", "before", "by_rdp", "by_pld"),
    [("epsilon 1.16", 1.160, 0.92, 0.84), ("epsilon 2.91", 2.905, 2.50, 2.30), ("epsilon 6.86", 6.860, 6.09, 5.44)],
)
def test_the_published_epsilon_is_that_of_the_old_conversion(name: str, before: float, by_rdp: float, by_pld: float):
    """rho(alpha) + log(1 / delta) / (alpha - 1), least over alpha (Mironov 2017, arXiv 1702.07476, proposition 3)."""
    noise, steps = settings(name)
    places = tuple(place for place, order in enumerate(ORDERS) if order >= 2)
    spent = steps * _divergence(places, RATE, noise)
    old = min(spent + math.log(1 / DELTA) / (np.array(ORDERS)[list(places)] - 1))
    assert old == pytest.approx(before, abs=0.001)
    rdp, pld = epsilons(np.array([RATE]), noise, np.array([steps]), DELTA)
    assert (rdp[0], pld[0]) == (pytest.approx(by_rdp, abs=0.005), pytest.approx(by_pld, abs=0.005))
