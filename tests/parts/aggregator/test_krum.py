"""Krum against two nested loops, and by hand."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import whole, wild

from fedexp.maths.rows import squared_distances
from fedexp.parts.aggregator.krum import krum, krum_scores


def slow_scores(rows: list[list[float]], f: int) -> list[Fraction]:
    scores = []
    for i, one in enumerate(rows):
        distances = []
        for j, other in enumerate(rows):
            if i != j:
                distances.append(sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(one, other, strict=True)))
        scores.append(sum(sorted(distances)[: len(rows) - f - 2], Fraction(0)))
    return scores


def most(rows: int) -> st.SearchStrategy[int]:
    return st.integers(0, (rows - 3) // 2)


def test_by_hand():
    # n = 5, f = 1: two neighbours each. Scores: 0: 1 + 4, 1: 1 + 1, 2: 1 + 4, 10: 64 + 81, 11: 1 + 81
    rows = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0]])
    assert krum_scores(squared_distances(rows), 1).tolist() == [5, 2, 5, 65, 82]
    assert krum(rows, 1).tolist() == [1]


def test_a_duplicate_is_a_neighbour_at_distance_nothing():
    rows = torch.tensor([[0.0], [5.0], [5.0], [2.0], [-3.0]])  # two neighbours each
    assert krum_scores(squared_distances(rows), 1).tolist() == [13, 9, 9, 13, 34]
    assert krum(rows, 1).tolist() == [5]


def test_equal_rows_are_obeyed():
    assert krum(torch.full((4, 3), 7.0), 0).tolist() == [7, 7, 7]


@pytest.mark.law(
    "aggregator=krum", "the result is the update with the least sum of squares to its n - f - 2 nearest, to the byte"
)
@given(st.data())
def test_equals_the_loops_with_ties(data: st.DataObject):
    rows = data.draw(whole(least=3))
    f = data.draw(most(len(rows)))
    slow = slow_scores(rows.tolist(), f)
    assert krum_scores(squared_distances(rows), f).tolist() == slow
    assert torch.equal(krum(rows, f), rows[slow.index(min(slow))])


@given(st.data())
def test_equals_the_loops_at_any_size(data: st.DataObject):
    rows = data.draw(wild(least=3))
    f = data.draw(most(len(rows)))
    slow = slow_scores(rows.tolist(), f)
    for found, expected in zip(krum_scores(squared_distances(rows), f).tolist(), slow, strict=True):
        assert math.isclose(found, expected, rel_tol=1e-13)
    chosen = krum(rows, f).tolist()
    assert any(
        row == chosen and score <= min(slow) * (1 + Fraction(1, 10**12))
        for row, score in zip(rows.tolist(), slow, strict=True)
    )


@pytest.mark.parametrize(("n", "f"), [(1, 0), (2, 0), (4, 1), (6, 2)])
def test_too_few_rows(n: int, f: int):
    with pytest.raises(ValueError, match=rf"2f \+ 2 < n, got f = {f} and n = {n}"):
        krum(torch.zeros(n, 2), f)
