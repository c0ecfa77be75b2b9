"""CAF by hand and against a loop over the covariance itself."""

import pytest
import torch
from matrices import equal_shares, normal

from fedexp.maths.rows import squared_distances
from fedexp.parts.aggregator.caf import CAF, filter_weights


def slow(rows: torch.Tensor, f: int) -> torch.Tensor:
    """Algorithm 2 with whole covariances."""
    rows, weight, best, smallest = rows.double(), torch.ones(len(rows)).double(), None, float("inf")
    while best is None or weight.sum() > len(rows) - 2 * f:
        mean = weight @ rows / weight.sum()
        gap = rows - mean
        values, vectors = torch.linalg.eigh(gap.T @ (weight[:, None] * gap) / weight.sum())
        if values[-1] < smallest:
            best, smallest = mean, float(values[-1])
        tau = (gap @ vectors[:, -1]).square()
        weight = weight * (1 - tau / tau[weight > 0].max()).clamp(min=0)
    return best


def test_by_hand():
    """Points 0, 0, 0 and 8, f = 1: the mean is 2, tau is 4, 4, 4, 36, so weights become 8/9 thrice and 0.

    Their sum 8/3 is above n - 2f = 2, so the points 0 are looked at, whose variance 0 is the smallest.
    """
    rows = torch.tensor([[0.0], [0.0], [0.0], [8.0]])
    assert filter_weights(squared_distances(rows), 1).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    row, columns = CAF().reduce_and_report(rows, equal_shares(4), 1)
    assert (row.item(), columns) == (pytest.approx(0, abs=1e-9), {"kept": 3})


def test_it_ends_once_the_weights_sum_to_n_minus_2f():
    """Points -1, 0 and 1: both ends drop out, and the weights sum to 1, so the point 0 is not looked at alone."""
    rows = torch.tensor([[-1.0], [0.0], [1.0]])
    assert filter_weights(squared_distances(rows), 1).tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.law(
    "aggregator=caf", "of the means on the way of Algorithm 2 it is the one with the least largest variance"
)
@pytest.mark.parametrize(
    ("seed", "f", "shift"),
    [*((seed, 1 + seed % 4, 20) for seed in range(6)), (1, 3, 0), (15, 4, 0), (17, 2, 0), (42, 3, 0)],
)
def test_equals_the_loop(seed: int, f: int, shift: float):
    """Where nothing is shifted, the mean that counts is not the last one."""
    rows = normal(seed, 9, 4)
    rows[:f] += shift
    torch.testing.assert_close(CAF().reduce_and_report(rows, equal_shares(9), f)[0].double(), slow(rows, f))


@pytest.mark.law("aggregator=caf", "f = 0 is the mean, and equal rows are their own result")
def test_without_attackers_and_of_equal_rows_it_is_the_mean():
    rows = normal(1, 5, 3)
    torch.testing.assert_close(CAF().reduce_and_report(rows, equal_shares(5), 0)[0], rows.mean(dim=0))
    same = torch.tensor([[2.0, -3.0]] * 5)
    torch.testing.assert_close(CAF().reduce_and_report(same, equal_shares(5), 2)[0], same[0])
