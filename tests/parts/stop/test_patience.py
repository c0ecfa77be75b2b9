import pytest

from fedexp.parts.stop.patience import Patience
from fedexp.parts.stop.simulated_time import SimulatedTime
from fedexp.parts.stop.target import Target


def test_target_is_reached_at_equality():
    stop = Target(accuracy=0.8)
    assert stop.judge({"validation_accuracy": 0.79}, {})[0] is None
    reason, _ = stop.judge({"validation_accuracy": 0.8}, {})
    assert reason == "validation accuracy 0.8000 reached 0.8"


def test_patience_counts_rounds_without_a_clear_improvement():
    stop, memory, reasons = Patience(rounds=2, min_delta=0.1), {}, []
    for loss in (1.0, 0.95, 0.8, 0.75, 0.9):
        reason, memory = stop.judge({"validation_loss": loss}, memory)
        reasons.append(reason)
    assert reasons == [None, None, None, None, "validation loss has not improved for 2 rounds"]


@pytest.mark.parametrize(("seconds", "ends"), [(119.9, False), (120.0, True)])
def test_simulated_minutes(seconds: float, ends: bool):
    assert (SimulatedTime(minutes=2).judge({"sim_s": seconds}, {})[0] is not None) == ends
