import numpy as np
import pytest

from fedexp.data.tables.encoding import distinct_texts, held_out_mask, one_hot, standardise


def test_mean_and_deviation_are_those_of_the_training_rows():
    values = np.array([[1.0, 7.0], [3.0, 7.0], [9.0, 8.0]])
    train = np.array([True, True, False])
    assert standardise(values, train).tolist() == [[-1.0, 0.0], [1.0, 0.0], [7.0, 1.0]]


def test_a_gap_is_the_mean_and_counts_for_nothing():
    values = np.array([[1.0], [np.nan], [3.0], [np.nan]])
    assert standardise(values, np.array([True, True, True, False])).tolist() == [[-1.0], [0.0], [1.0], [0.0]]
    assert standardise(np.full((2, 1), np.nan), np.array([True, False])).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("scale", [2.0**-1060, 1e-200, 1e200, 2.0**1022])
def test_numbers_whose_squares_no_float_holds(scale: float):
    values = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 7.0]]) * [scale, 1.0]
    found = standardise(values, np.array([True, True, False]))
    assert found.tolist() == [[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]


def test_a_row_may_be_infinitely_far_off():
    values = np.array([[1.0], [2.0], [-1e308], [np.nan]])
    assert standardise(values * 1e-9, np.array([True, True, False, False]))[2:].tolist() == [[-np.inf], [0.0]]


def test_a_constant_is_only_moved_also_where_its_mean_is_rounded():
    values = np.array([[0.1], [0.1], [0.1], [0.2]])  # 0.1 + 0.1 + 0.1 is more than 0.3
    assert standardise(values, np.array([True, True, True, False]))[:, 0] == pytest.approx([0, 0, 0, 0.1])


def test_categories_come_from_the_training_rows():
    values = np.array(["b", "", "a", "c"])
    names = distinct_texts(values, np.array([True, True, True, False]))
    assert names.tolist() == ["a", "b"]
    assert one_hot(values, names).tolist() == [[0, 1], [0, 0], [1, 0], [0, 0]]


@pytest.mark.parametrize(("sizes", "fraction", "expected"), [((10, 5, 1), 0.2, (2, 1, 0)), ((4, 3), 0.5, (2, 1))])
def test_each_group_gives_its_share_rounded_down(sizes, fraction, expected):
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(len(sizes)), sizes))
    chosen = held_out_mask(groups, fraction, np.random.default_rng(0))
    assert tuple(np.bincount(groups[chosen], minlength=len(sizes)).tolist()) == expected
    again = held_out_mask(groups, fraction, np.random.default_rng(0))
    assert np.array_equal(chosen, again)
    assert not np.array_equal(chosen, held_out_mask(groups, fraction, np.random.default_rng(1)))
