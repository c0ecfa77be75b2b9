"""A wanted value of the main metric on the test data: the rounds until then are those of a run that goes on."""

import pytest
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.stop.target_on_test import TargetOnTest
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility


def test_the_test_data_is_judged_and_no_other():
    stop = TargetOnTest(value=0.8)
    row: dict[str, float | None] = {"validation_accuracy": 0.9, "test_accuracy": 0.79}
    assert stop.judge(row, {})[0] is None
    assert stop.judge({**row, "test_accuracy": 0.8}, {})[0] == "test accuracy 0.8000 reached 0.8"
    assert not stop.needs_validation


@pytest.mark.parametrize("every", [1, 2])
def test_the_rounds_until_then_are_those_of_a_run_that_goes_on(tiny: Tiny, every: int):
    def accuracies(*words: str) -> list[tuple[int, float | None]]:
        world = world_of(tiny("rounds=6", f"evaluation.every={every}", *words))
        told = run_rounds(world.exp, world, world.initial_state())
        return [(state.round, row.get("test_accuracy")) for state, row, _ in told]

    whole = accuracies()
    values = [value for _, value in whole if value is not None]
    goal = max(values[:2])
    ended = accuracies("stop=target_on_test", f"stop.value={goal}")
    last = next(round_number for round_number, value in whole if value is not None and value >= goal)
    assert ended == whole[:last]
    assert last < 6


def test_without_evaluation_there_is_nothing_to_judge(tiny: Tiny):
    with pytest.raises(ConfigError, match="counts rounds by test data"):
        compatibility.refuse(spec.build(tiny("stop=target_on_test", "evaluation.test=false")))
