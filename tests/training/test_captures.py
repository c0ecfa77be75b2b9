import numpy as np
import torch

from fedexp.training.captures import padded, rounded_down, rounded_up


def test_shapes_are_rounded_up():
    assert [rounded_up(size) for size in range(1, 14)] == [1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12, 16]
    assert [rounded_down(size) for size in range(1, 14)] == [1, 2, 3, 4, 4, 6, 6, 8, 8, 8, 8, 12, 12]
    rows, taking, due, index, mask = padded(
        np.array([7, 3, 4, 2, 1]),
        np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=bool),
        np.ones((2, 5, 1), dtype=np.float32),
        torch.ones((2, 5, 5)),
        torch.ones((2, 5, 5), dtype=torch.bool),
    )
    assert rows.tolist() == [7, 3, 4, 2, 1, 1]
    assert taking.sum(axis=0).tolist() == [2, 2, 1, 1, 1, 0]
    assert due.sum(axis=0).ravel().tolist() == [2, 2, 2, 2, 2, 0]
    assert index.shape == mask.shape == (2, 6, 6)
    assert int(mask.sum()) == 2 * 5 * 5
