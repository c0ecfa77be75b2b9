"""Coordinates and numbers that can be checked with a pencil."""

import numpy as np
import pytest

from fedexp.report.html import svg


def test_a_scale_puts_the_middle_in_the_middle():
    across = svg.Scale(0.0, 10.0, 100.0, 300.0)
    assert across(np.array([0.0, 5.0, 10.0])).tolist() == [100.0, 200.0, 300.0]
    assert float(svg.Scale(0.0, 1.0, 200.0, 0.0)(0.25)) == 150.0


def test_a_logarithmic_scale_counts_powers():
    up = svg.Scale(1.0, 100.0, 200.0, 0.0, log=True)
    assert up(np.array([1.0, 10.0, 100.0])).tolist() == [200.0, 100.0, 0.0]


@pytest.mark.parametrize(
    ("low", "high", "whole", "expected"),
    [
        (0.0, 1.0, False, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (1.0, 4.0, True, [1.0, 2.0, 3.0, 4.0]),
        (0.0, 3000.0, False, [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0]),
        (2.0, 2.0, False, [2.0]),
    ],
)
def test_ticks_are_round_numbers(low, high, whole, expected):
    assert svg.ticks(low, high, whole=whole) == expected


def test_powers_of_ten():
    assert svg.powers(0.05, 2000.0) == pytest.approx([0.1, 1.0, 10.0, 100.0, 1000.0])
    assert [svg.power(value) for value in (0.01, 1000.0, 1e6, 1e-4)] == ["0.01", "1000", "10⁶", "10⁻⁴"]


def test_a_path_steps_from_point_to_point():
    assert svg.path(np.array([0.0, 10.0, 20.0]), np.array([5.0, 5.0, 2.5])) == "M0 5l10 0 10-2.5"
    assert svg.path(np.array([3.0]), np.array([4.0])) == "M3 4"


def test_rounding_does_not_add_up():
    x = np.arange(1000) * 0.04
    steps = svg.path(x, np.zeros(1000)).partition("l")[2].split(" ")
    assert sum(float(step) for step in steps[::2]) == pytest.approx(40.0, abs=0.05)


def test_an_area_goes_there_above_and_back_below():
    x = np.array([0.0, 10.0])
    assert svg.area(x, low=np.array([8.0, 9.0]), high=np.array([2.0, 1.0])) == "M0 2l10-1 0 8 -10-1z"


def test_boxes_that_touch_still_do():
    assert svg.boxes([(0.0, 0.0, 1.26, 2.0), (1.26, 0.0, 1.26, 2.0)]) == "M0 0h1.3v2H0zM1.3 0h1.2v2H1.3z"


def test_numbers_of_few_digits():
    assert [svg.short(value) for value in (0.0, 0.86125, 12.0, 21066.4, 1e-7)] == [
        "0", "0.8612", "12", "21,070", "1e-07",
    ]  # fmt: skip


def test_words_of_a_folder_stay_words():
    assert svg.label(0, 0, '<b onclick="x">&', "tick").count("<") == 2
