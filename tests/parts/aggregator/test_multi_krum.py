"""Multi-Krum against the obvious loop, and by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, equal_shares, normal, whole, wild

from fedexp.maths.rows import squared_distances
from fedexp.parts.aggregator.krum import krum, krum_scores
from fedexp.parts.aggregator.multi_krum import MultiKrum, multi_krum


def slow(rows: torch.Tensor, share: list[float], f: int, m: int) -> list[float]:
    scores = krum_scores(squared_distances(rows), f).tolist()  # test_krum compares them with loops
    best = sorted(range(len(rows)), key=lambda row: (scores[row], row))[:m]
    total = sum(share[row] for row in best)
    return [sum(share[row] * rows[row, column].item() for row in best) / total for column in range(rows.shape[1])]


def test_by_hand():
    # the scores of 0, 1, 2, 10, 11 with f = 1 are 5, 2, 5, 65, 82
    rows = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0]])
    assert [multi_krum(rows, equal_shares(5), 1, m).item() for m in (1, 2, 3, 4)] == [1, 0.5, 1, 3.25]
    assert multi_krum(rows, torch.tensor([3.0, 1, 0, 0, 0]).double(), 1, 2).item() == 0.25


@pytest.mark.law("aggregator=multi_krum", "the result is the weighted mean of the m updates with the best scores")
@given(st.data())
def test_equals_the_loop(data: st.DataObject):
    rows = data.draw(whole(least=3) | wild(least=3))
    f = data.draw(st.integers(0, (len(rows) - 3) // 2))
    m = data.draw(st.integers(1, len(rows) - f))
    share = torch.tensor(data.draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows)))).double()
    assert close(multi_krum(rows, share, f, m), slow(rows, share.tolist(), f, m), rows)


@pytest.mark.parametrize(("m", "kept"), [(None, 7), (3, 3), (50, 7)])
def test_how_many_are_kept(m: int | None, kept: int):
    rows = normal(0, 9, 4)
    row, columns = MultiKrum(m=m).reduce_and_report(rows, equal_shares(9), 2)
    assert columns == {"kept": kept}
    assert torch.equal(row, multi_krum(rows, equal_shares(9), 2, kept))


@pytest.mark.law("aggregator=multi_krum", "m = 1 is Krum, to the byte")
def test_one_of_them_is_krum():
    rows = normal(1, 9, 4)
    assert torch.equal(multi_krum(rows, equal_shares(9), 2, 1), krum(rows, 2))
