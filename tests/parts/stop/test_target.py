"""A wanted accuracy."""

from fedexp.parts.stop.target import Target


def test_target_is_reached_at_equality():
    stop = Target(accuracy=0.8)
    assert stop.judge({"validation_accuracy": 0.79}, {})[0] is None
    reason, _ = stop.judge({"validation_accuracy": 0.8}, {})
    assert reason == "validation accuracy 0.8000 reached 0.8"
