"""The trimmed mean against sorting a list, and how much is trimmed."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, whole, wild

from fedexp.core.errors import ConfigError
from fedexp.parts.aggregator.trimmed_mean import TrimmedMean, trim_count, trimmed_mean


def slow(rows: torch.Tensor, trim: int) -> list[float]:
    means = []
    for column in rows.T.tolist():
        kept = sorted(Fraction(value) for value in column)[trim : len(column) - trim]
        means.append(float(sum(kept) / len(kept)))
    return means


@pytest.mark.law("aggregator=trimmed_mean", "f = 0 is the mean")
def test_by_hand():
    rows = torch.tensor([[1.0, 8.0], [2.0, -900.0], [6.0, 2.0], [100.0, 5.0]])
    assert trimmed_mean(rows, 0).tolist() == [27.25, -221.25]
    assert trimmed_mean(rows, 1).tolist() == [4, 3.5]


@pytest.mark.law(
    "aggregator=trimmed_mean", "every coordinate is the mean of its column without the f smallest and the f largest"
)
@given(st.data())
def test_equals_sorting_a_list(data: st.DataObject):
    rows = data.draw(whole() | wild())
    trim = data.draw(st.integers(0, (len(rows) - 1) // 2))
    assert close(trimmed_mean(rows, trim), slow(rows, trim), rows)


def test_nothing_left():
    with pytest.raises(ValueError, match="trimming 2 at each end leaves nothing of 4 rows"):
        trimmed_mean(torch.zeros(4, 1), 2)


@pytest.mark.parametrize(
    ("beta", "rows", "trim"),
    [(0.2, 4, 0), (0.2, 5, 1), (0.29, 100, 29), (0.1, 30, 3), (0.4999999999, 10, 4), (0.4, 1, 0)],
)
def test_a_share_is_rounded_down(beta: float, rows: int, trim: int):
    assert trim_count(beta, rows) == trim


def test_a_share_goes_before_the_number():
    assert TrimmedMean(byzantine=3, beta=0.25).effective_byzantine(8, 1) == (2, {"byzantine": 2, "violated": 0})
    assert TrimmedMean(byzantine=3).effective_byzantine(8, 1) == (3, {"byzantine": 3, "violated": 0})
    with pytest.raises(ConfigError, match=r"TrimmedMean.beta must be a number in \[0, 0.5\) or null, got 0.5"):
        TrimmedMean(beta=0.5)
