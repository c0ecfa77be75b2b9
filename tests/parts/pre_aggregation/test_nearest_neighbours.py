"""Nearest-neighbour mixing against loops, and by hand."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, whole, wild
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.parts.pre_aggregation.nearest_neighbours import neighbour_means


def slow(rows: torch.Tensor, f: int) -> list[list[float]]:
    exact = [[Fraction(value) for value in row] for row in rows.tolist()]
    result = []
    for one in exact:
        distance = [sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for other in exact]
        near = sorted(range(len(exact)), key=lambda row: (distance[row], row))[: len(exact) - f]
        result.append([float(sum(exact[row][column] for row in near) / len(near)) for column in range(len(one))])
    return result


@pytest.mark.law("pre_aggregation=nearest_neighbours", "f = 0 makes every row the mean")
def test_by_hand():
    rows = torch.tensor([[0.0], [2.0], [3.0], [90.0]])
    assert neighbour_means(rows, 1).flatten().tolist() == [torch.tensor(5 / 3).item()] * 3 + [
        torch.tensor(95 / 3).item()
    ]
    assert neighbour_means(rows, 0).flatten().tolist() == [23.75] * 4
    assert neighbour_means(rows[:1], 0).flatten().tolist() == [0]


def test_what_is_mixed_is_shortened(tiny: Tiny):
    words = ("pre_aggregation=nearest_neighbours", "scenario.clients=3", "scenario.participants=3")
    world = world_of(tiny(*words, "pre_aggregation.byzantine=1", "pre_aggregation.clip_norm=1e-3"))
    row, _ = folded(world, uploads_like(torch.ones(3, world.layout.size)))
    assert float((row - world.first.flat).norm()) == pytest.approx(1e-3, rel=1e-3)


def test_ties_go_to_the_smallest_number():
    # from 1 both 0 and 2 are one away; from 4, both 2's are
    assert neighbour_means(torch.tensor([[0.0], [1.0], [2.0]]), 1).flatten().tolist() == [0.5, 0.5, 1.5]


@pytest.mark.parametrize(("rows", "f"), [(1, 1), (4, 2), (4, 9)])
def test_too_few_rows(rows: int, f: int):
    with pytest.raises(ValueError, match=f"needs 2f < n, got f = {f} and n = {rows}"):
        neighbour_means(torch.zeros(rows, 1), f)


@given(st.data())
def test_equals_the_loops(data: st.DataObject):
    rows = data.draw(whole() | wild())
    f = data.draw(st.integers(0, (len(rows) - 1) // 2))
    for found, expected in zip(neighbour_means(rows, f), slow(rows, f), strict=True):
        assert close(found, expected, rows)
