"""The clock of one round by hand."""

import numpy as np
import pytest

from fedexp.core.client_resources import Resources
from fedexp.parts.fleet.machines import simulate_round


def resources(update: list[float], upload: list[float], overhead: float = 0.0) -> Resources:
    return Resources(1 / np.array(upload), np.ones(len(update)), np.array(update), 1e6, overhead)


class TestPlay:
    everyone = np.full(3, np.inf)
    three = resources([5, 1, 12], [2, 3, 4])  # distribution takes 4 s, the uploads are in at 11, 14 and 20 s

    def test_without_a_deadline_the_last_upload_ends_the_round(self):
        outcome = simulate_round(self.three, self.everyone, None, 180.0)
        assert outcome.arrived.all()
        assert outcome.seconds == pytest.approx(20)

    def test_overhead_comes_first(self):
        assert simulate_round(
            resources([5, 1, 12], [2, 3, 4], 1.5), self.everyone, None, 180.0
        ).seconds == pytest.approx(21.5)

    def test_what_would_end_after_the_deadline_is_lost_and_the_round_ends_there(self):
        outcome = simulate_round(self.three, self.everyone, 15.0, 180.0)
        assert outcome.arrived.tolist() == [True, True, False]
        assert outcome.late.tolist() == [False, False, True]
        assert outcome.seconds == 15.0

    def test_the_round_ends_early_when_all_are_in(self):
        assert simulate_round(self.three, self.everyone, 100.0, 180.0).seconds == pytest.approx(20)

    def test_who_dropped_out_leaves_its_turn_to_the_next(self):
        outcome = simulate_round(self.three, np.array([-np.inf, np.inf, np.inf]), None, 180.0)
        assert outcome.arrived.tolist() == [False, True, True]
        assert not outcome.late.any()
        assert outcome.seconds == pytest.approx(4 + 16)  # the second is in at 4, the third trains until 12

    def test_when_all_drop_out_the_server_waits(self):
        assert simulate_round(self.three, np.full(3, -np.inf), 50.0, 180.0).seconds == 50
        assert simulate_round(self.three, np.full(3, -np.inf), None, 180.0).seconds == pytest.approx(
            4 + 180
        )  # after distribution
