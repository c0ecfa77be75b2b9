"""Rows are joined without a copy where that is possible, and with one where it is not."""

import numpy as np
import pytest
import torch

from fedexp.core.device_arrays import join_rows, neighbours

MATRIX = torch.arange(20.0).view(5, 4)


@pytest.mark.parametrize("columns", [4, 3])
def test_neighbours_in_one_matrix_are_not_copied(columns: int):
    rows = MATRIX[:, :columns]
    joined = join_rows([rows[1:2], rows[2:4], rows[4:]])
    assert torch.equal(joined, rows[1:])
    assert joined.data_ptr() == rows[1].data_ptr()


def test_views_of_one_row_stay_one_row():
    row = MATRIX[2]
    joined = join_rows([row.expand(2, -1), row.expand(3, -1)])
    assert joined.tolist() == [row.tolist()] * 5
    assert joined.stride(0) == 0


APART = {
    "gap": [MATRIX[:1], MATRIX[2:]],
    "turned": [MATRIX[2:], MATRIX[:2]],
    "twice": [MATRIX[:1], MATRIX[:1]],
    "other matrix": [MATRIX[:2], MATRIX.clone()[2:]],
    "other columns": [MATRIX[:2, :2], MATRIX[2:, 1:3]],
    "row and matrix": [MATRIX[0].expand(2, -1), MATRIX[1:]],
    "two rows": [MATRIX[0].expand(2, -1), MATRIX[1].expand(2, -1)],
    "none before": [MATRIX[:0], MATRIX[3:]],
}


@pytest.mark.parametrize("pieces", APART.values(), ids=APART)
def test_others_are_joined_all_the_same(pieces: list[torch.Tensor]):
    assert torch.equal(join_rows(pieces), torch.cat(pieces))


def test_positions_that_are_a_slice():
    assert neighbours(np.array([3, 4, 5])) == slice(3, 6)
    assert neighbours(np.array([2])) == slice(2, 3)
    assert neighbours(np.zeros(0, np.int64)) == slice(0, 0)
    assert neighbours(np.array([3, 5])) is neighbours(np.array([4, 3])) is None
