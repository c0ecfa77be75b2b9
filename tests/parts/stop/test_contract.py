"""What every stop must keep, found from conf/."""

import pytest
from composing import options
from worlds import Tiny

from fedexp.core import part as spec


@pytest.mark.parametrize("option", options("stop"))
def test_every_stop_answers_with_a_reason_or_none(tiny: Tiny, option: str):
    spent = ("privacy=dp_sgd", "privacy.clip=1", "privacy.epsilon=3", "privacy.delta=1e-3")
    stop = spec.build(tiny(f"stop={option}", "fleet=simulated", *(spent if option == "privacy_budget" else ()))).stop
    reason, memory = stop.judge(
        {
            "validation_loss": 1.0,
            "validation_accuracy": 0.0,
            "test_accuracy": 0.0,
            "sim_s": 0.0,
            "privacy.epsilon_next": 1.0,
        },
        {},
    )
    assert reason is None
    assert isinstance(memory, dict)
