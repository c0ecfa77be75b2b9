"""Bulyan against loops that score anew after every choice, and by hand."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, whole, wild

from fedexp.maths.rows import squared_distances
from fedexp.parts.aggregator.bulyan import bulyan, mean_around_median, select_by_krum


def slow_choice(square: list[list[float]], f: int, count: int) -> list[int]:
    left, chosen = list(range(len(square))), []
    for _ in range(count):
        neighbours = max(len(left) - f - 2, 1)
        scores = {i: sum(sorted(square[i][j] for j in left if j != i)[:neighbours]) for i in left}
        best = min(left, key=lambda i: (scores[i], i))
        left.remove(best)
        chosen.append(best)
    return sorted(chosen)


def slow_mean(values: list[float], count: int) -> float:
    ordered = sorted(Fraction(value) for value in values)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    nearest = sorted(ordered, key=lambda value: (abs(value - middle), value))[:count]
    return float(sum(nearest) / count)


def test_the_mean_around_the_median_by_hand():
    values = torch.tensor([[-9.0, 0.0, 1.0, 2.0, 50.0], [-1.0, -1.0, 0.0, 1.0, 1.0]])
    assert mean_around_median(values, 3).tolist() == [1, pytest.approx(-2 / 3)]


def test_one_attacker_by_hand():
    # n = 7, f = 1: five rows are chosen, never 1000; of 1 2 3 4 5 the three around 3 have the mean 3
    rows = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [1000.0]])
    assert select_by_krum(squared_distances(rows), 1, 5).tolist() == [0, 1, 2, 3, 4]
    assert bulyan(rows, 1).tolist() == [3]


@pytest.mark.law("aggregator=bulyan", "f = 0 is the mean")
def test_without_attackers_it_is_the_mean():
    assert bulyan(torch.tensor([[1.0], [2.0], [6.0]]), 0).tolist() == [3]


@given(st.data())
def test_the_choice_equals_the_loops(data: st.DataObject):
    rows = data.draw(whole(least=3, most=16) | wild(least=3, most=16))
    square = squared_distances(rows)
    f = data.draw(st.integers(0, (len(rows) - 3) // 4))
    count = len(rows) - 2 * f
    assert select_by_krum(square, f, count).tolist() == slow_choice(square.tolist(), f, count)


@pytest.mark.law(
    "aggregator=bulyan", "the result is the mean around the median of the rows that Krum chooses one after another"
)
@given(st.data())
def test_equals_the_loops(data: st.DataObject):
    rows = data.draw(whole(least=7, most=16) | wild(least=7, most=16, mixed=False))  # mixed sizes hide what is a tie
    f = data.draw(st.integers(1, (len(rows) - 3) // 4))
    chosen = slow_choice(squared_distances(rows).tolist(), f, len(rows) - 2 * f)
    expected = [slow_mean(column, len(rows) - 4 * f) for column in rows[chosen].T.tolist()]
    assert close(bulyan(rows, f), expected, rows[chosen])


def test_too_few_rows():
    with pytest.raises(ValueError, match="4f \\+ 3 <= n, got f = 1 and n = 6"):
        bulyan(torch.zeros(6, 1), 1)
