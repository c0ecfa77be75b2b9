"""Adagrad at the server, three rounds by hand."""

import pytest
from server_steps import path

from fedexp.parts.server_optimizer.adagrad import Adagrad


@pytest.mark.law("server_optimizer=adagrad", "the second moment is tau squared plus the sum of the squared updates")
def test_adagrad():
    """v = 1 + 3 = 4, 4 + 5 = 9, 9 + 16 = 25 with tau = 1: steps of lr d / 3, d / 4, d / 6."""
    asks = [3**0.5, -(5**0.5), 4.0]
    steps = [0.1 * ask / size for ask, size in zip(asks, (3, 4, 6), strict=True)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(Adagrad(lr=0.1, tau=1.0), asks) == pytest.approx(expected, abs=1e-7)
