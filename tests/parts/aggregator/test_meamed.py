"""MeaMed by hand and against loops."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, whole

from fedexp.parts.aggregator.meamed import average_around_median


def slow(values: list[float], count: int) -> float:
    ordered = sorted(values)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return sum(sorted(ordered, key=lambda value: (abs(value - middle), value))[:count]) / count


@pytest.mark.law("aggregator=meamed", "f = 0 is the mean")
def test_by_hand():
    # medians 3 and -1; the four values around them without 100, and without 9
    rows = torch.tensor([[1.0, -2.0], [2.0, -1.0], [3.0, 0.0], [4.0, -1.0], [100.0, 9.0]])
    assert average_around_median(rows, 1).tolist() == [2.5, -1.0]
    assert average_around_median(rows, 0).tolist() == [22.0, 1.0]


@pytest.mark.law("aggregator=meamed", "equal rows are their own result")
def test_equal_rows_are_their_mean():
    assert average_around_median(torch.tensor([[2.0, -3.0]] * 5), 2).tolist() == [2.0, -3.0]


@given(st.data())
def test_equals_the_loops(data: st.DataObject):
    rows = data.draw(whole())
    f = data.draw(st.integers(0, (len(rows) - 1) // 2))
    expected = [slow(column, len(rows) - f) for column in rows.T.tolist()]
    assert close(average_around_median(rows, f), expected, rows)


@pytest.mark.law("aggregator=meamed", "f values far out count for nothing")
@pytest.mark.parametrize("f", [0, 1, 2])
def test_what_lies_far_out_counts_for_nothing(f: int):
    near = torch.tensor([[float(value)] for value in range(5 - f)])
    rows = torch.cat([near, torch.full((f, 1), 1e30)])
    assert average_around_median(rows, f).item() == pytest.approx(float(near.mean()))
