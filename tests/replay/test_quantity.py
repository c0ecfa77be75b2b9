"""What a cell reads from the rounds of a run, by hand."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.replay.quantity import CellQuantity
from fedexp.report.read.runs import Run


class FiveRounds:
    """A run that was tested in every second round."""

    folder, rounds = Path("five"), np.arange(1, 6)

    def column(self, _: str) -> np.ndarray:
        return np.array([0.5, np.nan, 0.9, np.nan, 0.7])


RUN = cast(Run, FiveRounds())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("test_accuracy", 0.7),
        ("test_accuracy last 2", 0.8),
        ("test_accuracy at 3", 0.9),
        ("test_accuracy max", 0.9),
        ("test_accuracy min", 0.5),
        ("roa@0.6", 3),
        ("roa@0.95", None),
    ],
)
def test_a_number_of_a_run(text: str, value: float | None):
    assert CellQuantity.parse(text, "").of(RUN) == (value if value is None else pytest.approx(value))


@pytest.mark.parametrize("number", [2, 6])
def test_a_round_without_a_value_is_told(number: int):
    with pytest.raises(ConfigError, match=f"five has no value of test_accuracy in round {number}"):
        CellQuantity.parse(f"test_accuracy at {number}", "").of(RUN)


def test_rounds_are_counts():
    assert [CellQuantity.parse(text, "").is_count for text in ("roa@0.9", "round", "test_loss")] == [True, True, False]
