"""A wanted value of the main metric."""

import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.stop.target import Target


def test_target_is_reached_at_equality():
    stop = Target(value=0.8)
    assert stop.judge({"validation_accuracy": 0.79}, {})[0] is None
    reason, _ = stop.judge({"validation_accuracy": 0.8}, {})
    assert reason == "validation accuracy 0.8000 reached 0.8"


def test_a_metric_of_which_less_is_better_must_fall_to_the_target():
    stop = Target(value=2.0)
    row: dict[str, float | None] = {"validation_loss": 9.0, "validation_rmse": 2.1, "validation_accuracy": 0.0}
    assert stop.judge(row, {})[0] is None
    assert stop.judge({**row, "validation_rmse": 2.0}, {})[0] == "validation rmse 2.0000 reached 2"


def test_a_share_is_between_0_and_1_and_another_metric_is_not():
    Target(value=2.0).refuse("rmse")
    with pytest.raises(ConfigError, match=r"^stop\.value must be a value of accuracy, from 0 to 1, got 2$"):
        Target(value=2.0).refuse("accuracy")


def test_no_value_can_be_guessed_of_a_metric_that_is_no_share():
    for metric in ("mae", "rmse", "perplexity", "r2"):
        with pytest.raises(ConfigError, match=rf"^stop\.value must be given where the main metric is {metric}: set"):
            Target().refuse(metric)
    Target().refuse("macro_f1")
    assert Target().judge({"validation_macro_f1": 0.94}, {})[0] is None
    assert Target().judge({"validation_macro_f1": 0.95}, {})[0] == "validation macro_f1 0.9500 reached 0.95"
