"""Adaptive robust clipping by hand."""

import pytest
import torch
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.parts.pre_aggregation.arc import clipping_length


@pytest.mark.law("pre_aggregation=arc", "f = 0 shortens nobody")
def test_the_length_by_hand():
    """Of 5 rows, f = 1: floor(2 / 5 * 4) = 1 is shortened; f = 2: floor(4 / 5 * 3) = 2; f = 0: none."""
    norm = torch.tensor([5.0, 1.0, 4.0, 2.0, 3.0])
    assert [clipping_length(norm, f) for f in (0, 1, 2)] == [5, 4, 3]
    assert clipping_length(torch.tensor([1.0, 9.0, 7.0]), 1) == 7  # floor(2 / 3 * 2) = 1


def test_a_round_by_hand(tiny: Tiny):
    """Rows of 1, 1 and 3: the last is shortened to 1, so the mean is 1; without f it is 5/3."""
    for f, mean in ((1, 1.0), (0, 5 / 3)):
        words = ("pre_aggregation=arc", f"pre_aggregation.byzantine={f}", "aggregator.weighting=uniform")
        world = world_of(tiny(*words, "scenario.clients=3", "scenario.participants=3"))
        rows = torch.ones(3, world.layout.size)
        rows[1] = 3
        row, _ = folded(world, uploads_like(rows))
        torch.testing.assert_close(row - world.first.flat, torch.full_like(row, mean), atol=1e-5, rtol=0)


@pytest.mark.law("pre_aggregation=arc", "equal rows stay as they are")
@pytest.mark.parametrize(("rows", "f"), [(3, 1), (10, 4)])
def test_equal_rows_stay(rows: int, f: int):
    assert clipping_length(torch.full((rows,), 2.0), f) == 2
