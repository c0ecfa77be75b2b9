"""The mean of rows that come in groups."""

import numpy as np
import torch

from fedexp.maths.group_mean import GroupMean


def test_by_hand_three_groups_of_two_rows():
    mean = GroupMean()
    mean.add(np.array([1.0, 3.0]), torch.tensor([[4.0, 0.0], [0.0, 8.0]]))
    mean.add(np.array([2.0]), torch.tensor([[1.0, 1.0]]))
    mean.add(np.array([0.0, 2.0]), torch.tensor([[100.0, 100.0], [3.0, 5.0]]))
    assert mean.weight == 8
    assert mean.mean().tolist() == [(4 + 2 + 6) / 8, (24 + 2 + 10) / 8]


def test_groups_are_added_in_pairs_of_pairs():
    mean = GroupMean()
    for group in range(7):
        mean.add(np.ones(1), torch.full((1, 1), 10.0**group))
    assert [(groups, total.tolist()) for groups, total in mean.sums] == [(4, [1111.0]), (2, [110000.0]), (1, [1e6])]
    assert mean.mean().tolist() == [1111111 / 7]


def test_what_cancels_in_float64_would_not_in_float32():
    mean, rows = GroupMean(), torch.tensor([[1e8], [1.0], [-1e8]])
    for row in rows:
        mean.add(np.ones(1), row[None])
    assert mean.mean().dtype == torch.float64
    assert mean.mean().tolist() == [1 / 3]
