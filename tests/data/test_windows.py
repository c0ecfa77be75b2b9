import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.data.windows import cut_all_segments, cut_segment, window_starts


@pytest.mark.parametrize(("length", "first"), [(127, []), (128, [0]), (191, [0]), (192, [0, 64]), (257, [0, 64, 128])])
def test_starts_by_hand(length, first):
    assert window_starts(length).tolist() == first


@given(st.integers(0, 3000))
def test_starts_against_the_slow_way(length):
    assert window_starts(length).tolist() == [begin for begin in range(0, length, 64) if begin + 128 <= length]


def test_cut_counts_from_one():
    signal = np.arange(400.0)[:, None] * [1, 10]
    windows = cut_segment(signal, 11, 11 + 191)
    assert windows.shape == (2, 2, 128)
    assert windows[0, 0].tolist() == list(range(10, 138))
    assert windows[1, 1, :2].tolist() == [740, 750]


def test_cut_all_labels_and_people():
    signals = {1: np.zeros((300, 6)), 2: np.ones((300, 6))}
    labels = np.array([[1, 21, 5, 1, 192], [1, 21, 12, 193, 250], [2, 4, 1, 100, 230]])
    found = cut_all_segments(signals, labels)
    assert found["y"].tolist() == [4, 4, 0]
    assert found["subject"].tolist() == [21, 21, 4]
    assert found["x"][:, 0, 0].tolist() == [0, 0, 1]
    assert found["x"].dtype == np.float32
