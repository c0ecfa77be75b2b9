"""DnC by hand, against the singular vectors themselves, and how many rows it may throw out."""

import pytest
import torch
from matrices import normal
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.parts.aggregator.dnc import DnC, outlying_rows


@pytest.mark.law("aggregator=dnc", "f = 0 throws nobody out")
def test_by_hand():
    """Along the first axis the mean is 2: squares 4, 1, 4, 1, 36, of which 36 goes, then the later one of the 4."""
    rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [8.0, 0.0]])
    assert outlying_rows(rows, 1).tolist() == [4]
    assert outlying_rows(rows, 2).tolist() == [4, 2]
    assert outlying_rows(rows, 0).tolist() == []


@pytest.mark.law("aggregator=dnc", "who goes lies farthest along the first singular direction")
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_singular_vectors(seed: int):
    rows = normal(seed, 8, 5)
    rows[3] += 4
    gap = rows.double() - rows.double().mean(dim=0)
    scores = (gap @ torch.linalg.svd(gap).Vh[0]).square()
    assert sorted(outlying_rows(rows, 3).tolist()) == sorted(scores.argsort(descending=True)[:3].tolist())


@pytest.mark.law("aggregator=dnc", "at least one row is left")
def test_at_least_one_row_is_left():
    assert [DnC().max_byzantine(rows) for rows in (0, 1, 5)] == [-1, 0, 4]
    assert DnC(iterations=3).max_byzantine(7) == 2
    assert DnC(fraction=1.5).max_byzantine(4) == 2


def test_a_round_by_hand(tiny: Tiny):
    """Three rows of ones and one of hundreds: the mean is that of the ones."""
    words = ("aggregator=dnc", "scenario.clients=4", "scenario.participants=4", "aggregator.byzantine=1")
    world = world_of(tiny(*words, "aggregator.dimensions=7"))
    rows = torch.ones(4, world.layout.size)
    rows[2] = 100
    row, _ = folded(world, uploads_like(rows))
    torch.testing.assert_close(row - world.first.flat, torch.ones_like(row), atol=1e-5, rtol=0)
