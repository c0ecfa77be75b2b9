"""Rows come to their positions, and are copied into a matrix only where one is asked for."""

import numpy as np
import pytest
import torch

from fedexp.core.device_arrays import Rows, as_matrix, gather_rows, neighbours, place_rows, subtract_rows

MATRIX = torch.arange(20.0).view(5, 4)


def test_rows_come_to_their_positions():
    pieces, positions = [MATRIX[:2], MATRIX[2].expand(2, -1), MATRIX[:0], MATRIX[4:]], [[4, 1], [0, 3], [], [2]]
    rows = place_rows(pieces, [np.array(at, np.int64) for at in positions])
    assert torch.equal(as_matrix(rows), MATRIX[[2, 1, 4, 2, 0]])


def test_a_single_piece_is_not_copied():
    assert place_rows([MATRIX], [np.arange(5)]) is MATRIX


def test_several_pieces_are_not_copied_until_the_matrix_is_asked_for():
    pieces, positions = [MATRIX[:2], MATRIX[3].expand(2, -1)], [np.array([3, 0]), np.array([1, 2])]
    rows = place_rows(pieces, positions)
    assert [row.data_ptr() for row in rows] == [MATRIX[number].data_ptr() for number in (1, 3, 3, 0)]
    matrix = as_matrix(rows)
    assert torch.equal(matrix, MATRIX[[1, 3, 3, 0]])
    assert as_matrix(matrix) is matrix


@pytest.mark.parametrize("rows", [MATRIX, MATRIX.unbind()], ids=["matrix", "one by one"])
def test_some_rows_are_gathered(rows: Rows):
    positions, out = torch.tensor([4, 0, 4]), torch.zeros(3, 4)
    assert torch.equal(gather_rows(rows, positions), MATRIX[[4, 0, 4]])
    gather_rows(rows, positions, out=out)
    assert torch.equal(out, MATRIX[[4, 0, 4]])


@pytest.mark.parametrize("subtrahends", [MATRIX, MATRIX.unbind()], ids=["matrix", "one by one"])
def test_rows_are_subtracted_in_place(subtrahends: Rows):
    rows = 3 * MATRIX
    assert subtract_rows(rows, subtrahends) is rows
    assert torch.equal(rows, 2 * MATRIX)


def test_positions_that_are_a_slice():
    assert neighbours(np.array([3, 4, 5])) == slice(3, 6)
    assert neighbours(np.array([2])) == slice(2, 3)
    assert neighbours(np.zeros(0, np.int64)) == slice(0, 0)
    assert neighbours(np.array([3, 5])) is neighbours(np.array([4, 3])) is None
