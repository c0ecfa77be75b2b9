import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.maths.curve_metrics import (
    DEFAULT_THRESHOLDS,
    area_to_end,
    area_under,
    best,
    final,
    higher_is_better,
    last,
    main_metric,
    metric_name,
    rounds_to,
    thresholds,
    time_to,
)

NAN = float("nan")
ACCURACY = [0.2, None, 0.5, NAN, 0.9, 0.7]


def test_area_by_hand():
    assert area_under([2.0, 1.0, 0.5]) == pytest.approx(1.5 + 0.75)


def test_area_bridges_rounds_that_were_not_evaluated():
    assert area_under([NAN, 2.0, None, None, 1.0, NAN]) == pytest.approx(3 * 1.5)


def test_area_of_less_than_two_rounds_does_not_exist():
    assert area_under([]) is None
    assert area_under([NAN, None]) is None
    assert area_under([0.3]) is None


@given(st.lists(st.floats(0, 100), min_size=2, max_size=50))
def test_area_is_that_of_the_drawn_trapezoid(heights):
    """The shoelace formula on the polygon under the curve."""
    width = len(heights) - 1
    x = np.array([0, *range(len(heights)), width])
    y = np.array([0.0, *heights, 0.0])
    polygon = abs((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2
    assert area_under(heights) == pytest.approx(polygon, abs=1e-9)


def test_the_first_round_at_the_threshold_counts_from_one():
    rounds = [1, 2, 3, 4, 5, 6]
    assert rounds_to(ACCURACY, 0.2, rounds) == 1
    assert rounds_to(ACCURACY, 0.5, rounds) == 3
    assert rounds_to(ACCURACY, 0.51, rounds) == 5
    assert rounds_to(ACCURACY, 0.91, rounds) is None
    assert rounds_to([], 0.5, []) is None


def test_time_is_cumulative():
    seconds = [10.0, 20.0, 35.0, 40.0, 70.0, 90.0]
    assert time_to(ACCURACY, seconds, 0.5) == 35.0
    assert time_to(ACCURACY, seconds, 0.8) == 70.0
    assert time_to(ACCURACY, seconds, 0.95) is None
    assert time_to(ACCURACY, [None] * 6, 0.5) is None


def test_best_and_final_skip_what_does_not_exist():
    assert best(ACCURACY) == 0.9
    assert final([*ACCURACY, None]) == 0.7
    assert best([]) is None
    assert final([None, NAN]) is None


def test_a_finished_curve_without_an_end_has_no_area():
    assert last([3.0, 2.0]) == 2
    assert last([3.0, 2.0, None]) is None
    assert last([]) is None
    assert area_to_end([3.0, None, 1.0]) == 4
    assert area_to_end([3.0, 2.0, None]) is None


def test_columns_of_a_table_are_welcome():
    table = pd.DataFrame({"round": [1, 2, 3], "test_accuracy": [0.1, NAN, 0.6]})
    assert rounds_to(table["test_accuracy"], 0.6, table["round"]) == 3
    assert area_under(table["test_accuracy"].to_numpy()) == pytest.approx(0.7)


def test_less_may_be_better():
    errors = [9.0, None, 5.0, 6.0, 2.0]
    assert best(errors, higher=False) == 2
    assert rounds_to(errors, 5.0, range(1, 6), higher=False) == 3
    assert rounds_to(errors, 1.0, range(1, 6), higher=False) is None
    assert time_to(errors, [1.0, 2.0, 3.0, 4.0, 5.0], 2.5, higher=False) == 5


def test_the_main_metric_is_the_first_that_is_one_number():
    columns = ["round", "test_loss", "test_recall.cat", "test_rmse", "test_accuracy", "validation_accuracy"]
    assert main_metric(columns) == "rmse"
    assert main_metric(columns, "validation") == "accuracy"
    assert main_metric(["round"]) == "accuracy"


def test_a_metric_of_a_user_is_a_metric():
    assert main_metric(["round", "test_loss", "test_recall.cat", "test_f2", "test_accuracy"]) == "f2"
    assert [metric_name(entry) for entry in ("auroc", "mine.metrics:f2")] == ["auroc", "f2"]
    assert [higher_is_better(name) for name in ("f2", "auroc", "brier", "loss")] == [True, True, False, False]


def test_no_values_are_usual_of_a_metric_that_is_no_share():
    assert thresholds(None, "macro_f1") == DEFAULT_THRESHOLDS == (0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
    assert thresholds(None, "mae") == thresholds(None, "r2") == thresholds([], "accuracy") == ()
    assert thresholds([40.0], "mae") == (40.0,)


def test_an_auroc_of_one_half_is_no_target():
    assert thresholds(None, "auroc") == (0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
    assert thresholds([0.4], "auroc") == (0.4,)
