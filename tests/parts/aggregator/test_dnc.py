"""DnC by hand, against the singular vectors themselves, and how many rows it may throw out."""

import numpy as np
import pytest
import torch
from matrices import normal
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.parts.aggregator.dnc import DnC, outlying_rows
from fedexp.simulation import context


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


@pytest.mark.law("aggregator=dnc", "who goes in any turn is out, and each turn draws other columns")
@pytest.mark.parametrize("seed", range(4))
def test_turns_by_turns(tiny: Tiny, seed: int):
    """f = 1 and a fraction of 1.5 take one row a turn."""
    words = ("aggregator=dnc", "scenario.clients=6", "scenario.participants=6", "aggregator.byzantine=1")
    more = ("aggregator.iterations=3", "aggregator.fraction=1.5", "aggregator.dimensions=3", f"seed={seed}")
    world = world_of(tiny(*words, *more))
    rows, rng = normal(seed, 6, world.layout.size), context.make_context(world, 1).rng("aggregator")
    turns = [rows[:, np.sort(rng.choice(world.layout.size, 3, replace=False))] for _ in range(3)]
    out = {int(outlying_rows(drawn, 1)) for drawn in turns}
    model, memory = folded(world, uploads_like(rows))
    assert memory["aggregator"]["columns"]["kept"] == 6 - len(out)
    kept = [client for client in range(6) if client not in out]
    torch.testing.assert_close(model - world.first.flat, rows[kept].mean(dim=0), atol=1e-5, rtol=0)


def test_a_round_by_hand(tiny: Tiny):
    """Three rows of ones and one of hundreds: the mean is that of the ones."""
    words = ("aggregator=dnc", "scenario.clients=4", "scenario.participants=4", "aggregator.byzantine=1")
    world = world_of(tiny(*words, "aggregator.dimensions=7"))
    rows = torch.ones(4, world.layout.size)
    rows[2] = 100
    row, _ = folded(world, uploads_like(rows))
    torch.testing.assert_close(row - world.first.flat, torch.ones_like(row), atol=1e-5, rtol=0)
