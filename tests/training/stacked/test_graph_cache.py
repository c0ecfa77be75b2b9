import gc

import numpy as np

from fedexp.training.stacked.graph_cache import (
    choose_steps_per_graph,
    collecting_no_garbage,
    pad_rows,
    round_down_size,
    round_up_size,
)
from fedexp.training.stacked.step_schedule import StepArrays


def test_shapes_are_rounded_up():
    assert [round_up_size(size) for size in range(1, 14)] == [1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12, 16]
    assert [round_down_size(size) for size in range(1, 14)] == [1, 2, 3, 4, 4, 6, 6, 8, 8, 8, 8, 12, 12]
    rows, (index, mask, taking, due, early) = pad_rows(
        np.array([7, 3, 4, 2, 1]),
        StepArrays(
            np.arange(50).reshape(2, 5, 5),
            np.ones((2, 5, 5), dtype=bool),
            np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=bool),
            np.ones((2, 5, 1), dtype=np.float32),
            np.ones((2, 5, 1), dtype=np.float32),
        ),
        (0, 0),
    )
    assert rows.tolist() == [7, 3, 4, 2, 1, 1]
    assert taking.sum(axis=0).tolist() == [2, 2, 1, 1, 1, 0]
    assert due.sum(axis=0).ravel().tolist() == early.sum(axis=0).ravel().tolist() == [2, 2, 2, 2, 2, 0]
    assert index.shape == mask.shape == (2, 6, 6)
    assert int(mask.sum()) == 2 * 5 * 5
    assert index[..., 5].tolist() == [[4, 9, 14, 19, 24, 24], [29, 34, 39, 44, 49, 49]]  # of the same batch


def test_what_the_config_asks_for_is_not_rounded_up():
    assert [round_up_size(size, 10) for size in range(7, 14)] == [8, 8, 10, 10, 12, 12, 16]
    ones = np.ones((1, 10, 1))
    arrays = StepArrays(np.zeros((1, 10, 20), int), np.ones((1, 10, 20), bool), ones[..., 0] > 0, ones, ones)
    rows, (index, *_) = pad_rows(np.arange(10), arrays, (10, 20))
    assert (len(rows), index.shape) == (10, (1, 10, 20))


def test_few_steps_are_captured_together_and_next_to_none_in_vain():
    assert [choose_steps_per_graph(steps) for steps in (0, 1, 2, 3, 5, 16, 17, 31, 115)] == [
        1,
        1,
        2,
        3,
        5,
        16,
        6,
        16,
        12,
    ]
    assert all(
        -(-steps // choose_steps_per_graph(steps)) * choose_steps_per_graph(steps) <= steps * 17 / 16
        for steps in range(1, 500)
    )


def test_no_garbage_is_collected_while_a_graph_is_captured():
    with collecting_no_garbage():
        assert not gc.isenabled()
        with collecting_no_garbage():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
