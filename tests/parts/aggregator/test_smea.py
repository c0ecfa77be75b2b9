"""SMEA by hand and against the covariances themselves."""

from itertools import combinations

import pytest
import torch
from matrices import equal_shares, normal

from fedexp.parts.aggregator.smea import SMEA


def smea(rows: torch.Tensor, f: int) -> torch.Tensor:
    return SMEA().reduce_and_report(rows, equal_shares(len(rows)), f)[0]


@pytest.mark.law("aggregator=smea", "f = 0 is the mean")
def test_by_hand():
    """A diameter tells (0, 0), (2, 0), (1, 1) from a line less well than the variance along one direction does.

    Of four points three are taken. Without the last: points of a triangle, variances 2/3 and 2/9; without the third:
    0, 2 and 4 on a line, 8/3.
    """
    rows = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [4.0, 0.0]])
    torch.testing.assert_close(smea(rows, 1), torch.tensor([1.0, 1 / 3]))
    torch.testing.assert_close(smea(rows, 0), rows.mean(dim=0))


@pytest.mark.law(
    "aggregator=smea", "the result is the mean of the n - f rows whose largest variance along a direction is least"
)
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_covariances(seed: int):
    rows, f = normal(seed, 7, 5), seed % 4

    def largest(each: tuple[int, ...]) -> float:
        return float(torch.linalg.eigvalsh(torch.cov(rows[list(each)].double().T, correction=0))[-1])

    best = min(combinations(range(7), 7 - f), key=largest)
    torch.testing.assert_close(smea(rows, f), rows[list(best)].mean(dim=0))


@pytest.mark.law("aggregator=smea", "equal rows are their own result")
def test_equal_rows_are_their_mean():
    assert smea(torch.tensor([[2.0, -3.0]] * 5), 2).tolist() == [2.0, -3.0]
