"""Rows are put together without a copy where that is possible, and with one where it is not."""

import numpy as np
import pytest
import torch

from fedexp.core.device_arrays import neighbours, place_rows

MATRIX = torch.arange(20.0).view(5, 4)


def test_rows_come_to_their_positions():
    pieces, positions = [MATRIX[:2], MATRIX[2].expand(2, -1), MATRIX[:0], MATRIX[4:]], [[4, 1], [0, 3], [], [2]]
    rows = place_rows(pieces, [np.array(at, np.int64) for at in positions])
    assert torch.equal(rows, MATRIX[[2, 1, 4, 2, 0]])


def test_a_single_piece_is_not_copied():
    assert place_rows([MATRIX], [np.arange(5)]) is MATRIX


@pytest.mark.parametrize("columns", [4, 3])
def test_first_columns_of_placed_rows_are_not_copied(columns: int):
    pieces, positions = [MATRIX[:2], MATRIX[3].expand(2, -1)], [np.array([3, 0]), np.array([1, 2])]
    placed = place_rows(pieces, positions)
    rows = place_rows([piece[:, :columns] for piece in pieces], positions, (pieces, placed))
    assert torch.equal(rows, placed[:, :columns])
    assert rows.data_ptr() == placed.data_ptr()


CHANGED = {
    "last columns": [MATRIX[:2, 1:], MATRIX[2:, 1:]],
    "a copy": [MATRIX[:2].clone(), MATRIX[2:]],
    "one row": [MATRIX[0].expand(2, -1), MATRIX[2:]],
    "other types": [MATRIX[:2].view(torch.int32), MATRIX[2:].view(torch.int32)],
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_others_are_placed_all_the_same(changed: list[torch.Tensor]):
    pieces, positions = [MATRIX[:2], MATRIX[2:]], [np.array([1, 4]), np.array([0, 2, 3])]
    rows = place_rows(changed, positions, (pieces, place_rows(pieces, positions)))
    assert torch.equal(rows, torch.cat(changed)[[2, 0, 3, 4, 1]])


def test_positions_that_are_a_slice():
    assert neighbours(np.array([3, 4, 5])) == slice(3, 6)
    assert neighbours(np.array([2])) == slice(2, 3)
    assert neighbours(np.zeros(0, np.int64)) == slice(0, 0)
    assert neighbours(np.array([3, 5])) is neighbours(np.array([4, 3])) is None
