"""Adam at the server, three rounds by hand."""

import math

import pytest
from server_steps import path

from fedexp.parts.server_optimizer.adam import Adam
from fedexp.parts.server_optimizer.amsgrad import AMSGrad
from fedexp.parts.server_optimizer.yogi import Yogi


@pytest.mark.law(
    "server_optimizer=adam", "both moments are running means, without a correction, the second from tau squared on"
)
def test_adam():
    # m = .5, -.75, 1.625; v = .5*1+.5*1 = 1, .5*1+.5*4 = 2.5, .5*2.5+.5*16 = 9.25; steps .1 m / (sqrt(v) + 1)
    steps = [0.05 / 2, -0.075 / (2.5**0.5 + 1), 0.1625 / (9.25**0.5 + 1)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(Adam(lr=0.1, beta1=0.5, beta2=0.5, tau=1.0), [1, -2, 4]) == pytest.approx(expected)


@pytest.mark.parametrize("rule", [Adam, AMSGrad, Yogi])
def test_an_update_whose_square_is_no_float32_does_no_harm_later(rule: type[Adam]):
    assert all(map(math.isfinite, path(rule(), [2e19, 2e19, 1.0])))
