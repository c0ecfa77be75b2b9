"""Yogi at the server, three rounds by hand."""

import pytest
from server_steps import path

from fedexp.parts.server_optimizer.yogi import Yogi


@pytest.mark.law("server_optimizer=yogi", "a squared update d above the second moment raises it by (1 - beta2) d")
def test_yogi():
    # v = 1 - .5*1*sign(0) = 1, then 1 - .5*4*sign(1-4) = 3, then 3 - .5*16*sign(3-16) = 11
    steps = [0.05 / 2, -0.075 / (3**0.5 + 1), 0.1625 / (11**0.5 + 1)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(Yogi(lr=0.1, beta1=0.5, beta2=0.5, tau=1.0), [1, -2, 4]) == pytest.approx(expected)
