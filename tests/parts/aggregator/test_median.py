"""The median against the one of the standard library, in exact numbers."""

import statistics
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from matrices import whole, wild

from fedexp.parts.aggregator.median import median


def test_by_hand():
    assert median(torch.tensor([[1.0, 5.0], [9.0, 5.0], [2.0, 7.0]])).tolist() == [2, 5]
    assert median(torch.tensor([[1.0, 5.0], [9.0, 5.0], [2.0, 7.0], [4.0, 8.0]])).tolist() == [3, 6]


def test_two_huge_values_do_not_overflow():
    assert median(torch.tensor([[3e38], [3e38]])).item() == torch.tensor(3e38).item()


@pytest.mark.law("aggregator=median", "every coordinate is the median of its column, to the byte")
@given(whole() | wild())
def test_equals_the_plain_one_to_the_bit(rows: torch.Tensor):
    expected = [float(statistics.median([Fraction(value) for value in column])) for column in rows.T.tolist()]
    assert torch.equal(median(rows), torch.tensor(expected, dtype=torch.float64).float())
