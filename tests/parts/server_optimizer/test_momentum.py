"""Momentum at the server, three rounds by hand."""

import pytest
from server_steps import path

from fedexp.parts.server_optimizer.momentum import Momentum


@pytest.mark.law("server_optimizer=momentum", "v becomes beta v plus the update, and the step is lr v")
def test_momentum():
    # v = 1, 0.5 - 2 = -1.5, -0.75 + 4 = 3.25; steps of 0.1 v
    assert path(Momentum(lr=0.1, beta=0.5), [1, -2, 4]) == pytest.approx([0.1, -0.05, 0.275])
