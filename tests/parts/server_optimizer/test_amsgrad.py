"""AMSGrad at the server, by hand."""

import pytest
from server_steps import path

from fedexp.parts.server_optimizer.amsgrad import AMSGrad


@pytest.mark.law("server_optimizer=amsgrad", "the second moment that divides never falls")
def test_the_largest_second_moment_stays():
    # m = 2, 1.5, 2.75; v = 8, 4.5, 10.25, of which the largest so far are 8, 8, 10.25
    steps = [0.2 / (8**0.5 + 1), 0.15 / (8**0.5 + 1), 0.275 / (10.25**0.5 + 1)]
    expected = [sum(steps[: n + 1]) for n in range(3)]
    assert path(AMSGrad(lr=0.1, beta1=0.5, beta2=0.5, tau=1.0), [4, 1, 4]) == pytest.approx(expected)
