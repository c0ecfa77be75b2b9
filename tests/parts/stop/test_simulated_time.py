"""So many minutes of the fleet's clock."""

import pytest

from fedexp.parts.stop.simulated_time import SimulatedTime


@pytest.mark.parametrize(("seconds", "ends"), [(119.9, False), (120.0, True)])
def test_simulated_minutes(seconds: float, ends: bool):
    assert (SimulatedTime(minutes=2).judge({"sim_s": seconds}, {})[0] is not None) == ends
