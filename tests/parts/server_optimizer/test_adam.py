"""Adam at the server, three rounds by hand."""

import pytest
from server_steps import path

from fedexp.parts.server_optimizer.adam import Adam


@pytest.mark.law(
    "server_optimizer=adam", "both moments are running means, without a correction, the second from tau squared on"
)
def test_adam():
    # m = .5, -.75, 1.625; v = .5*1+.5*1 = 1, .5*1+.5*4 = 2.5, .5*2.5+.5*16 = 9.25; steps .1 m / (sqrt(v) + 1)
    steps = [0.05 / 2, -0.075 / (2.5**0.5 + 1), 0.1625 / (9.25**0.5 + 1)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(Adam(lr=0.1, beta1=0.5, beta2=0.5, tau=1.0), [1, -2, 4]) == pytest.approx(expected)
