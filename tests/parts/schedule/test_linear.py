"""A straight line by hand."""

import pytest

from fedexp.parts.schedule.linear import Linear


@pytest.mark.law("schedule=linear", "every round takes the same amount off the rate until its end")
def test_by_hand():
    assert [Linear(rounds=4).factor(number) for number in (1, 2, 3, 4, 5, 6)] == [1, 0.75, 0.5, 0.25, 0, 0]
    assert Linear(rounds=4, end=0.5).factor(3) == 0.75


def test_the_warm_up_is_part_of_the_rounds():
    assert Linear(rounds=6, warmup=2).factor(5) == pytest.approx(0.5)
