"""Exponential decay by hand."""

import pytest

from fedexp.parts.schedule.exponential import Exponential


@pytest.mark.law("schedule=exponential", "every round multiplies the rate by gamma")
def test_by_hand():
    assert [Exponential(gamma=0.5).factor(number) for number in (1, 2, 3, 4)] == [1, 0.5, 0.25, 0.125]
    assert Exponential(gamma=0.5, warmup=2).factor(4) == 0.5


def test_feddyns_rate():
    """0.1 times 0.998 a round: after 999 rounds 13.5 % of it."""
    assert Exponential(gamma=0.998).factor(1000) == pytest.approx(0.1353, abs=1e-4)
