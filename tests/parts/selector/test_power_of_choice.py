from dataclasses import replace

import numpy as np
import pytest
import torch
from stages import Stage, play

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.selector.power_of_choice import PowerOfChoice


@pytest.mark.law("selector=power_of_choice", "with everybody as a candidate those with the largest losses are asked")
def test_three_rounds_by_hand(equal_sizes: Stage):
    losses = [np.array([1, 2, 3, 4, 5, 6.0]), np.array([9, 1, 9, 1, 1, 1.0]), np.array([2, 2, 2, 2, 2, 2.0])]
    stages = [replace(equal_sizes, loss=loss) for loss in losses]
    owners, _ = play(PowerOfChoice(count=2, candidates=6), stages)
    assert owners == [[4, 5], [0, 2], [0, 1]]


@pytest.mark.law("selector=power_of_choice", "only candidates are asked for their losses")
def test_only_candidates_are_asked(equal_sizes: Stage):
    asked = []

    class Asking(Stage):
        def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
            asked.append(owner.tolist())
            return np.arange(6.0)[owner] ** power

    owners, _ = play(PowerOfChoice(count=2, candidates=3), [Asking(equal_sizes.sizes)] * 3)
    assert [len(owner) for owner in asked] == [3, 3, 3]
    assert owners == [sorted(owner)[-2:] for owner in asked]


@pytest.mark.law("selector=power_of_choice", "candidates are drawn in proportion to their examples")
def test_candidates_are_drawn_in_proportion_to_their_examples():
    stage, rule = Stage(np.array([10, 30, 0]), loss=np.zeros(3)), PowerOfChoice(count=1, candidates=1)
    seen = [rule.choose({}, replace(stage, seed=s).ctx)[0].owner[0] for s in range(3000)]
    assert np.bincount(seen, minlength=3) / 3000 == pytest.approx([0.25, 0.75, 0.0], abs=0.03)


def test_last_seen_losses_by_hand(equal_sizes: Stage):
    selector = PowerOfChoice(count=3, candidates=6, losses="last_seen")
    owners, memories = play(selector, [equal_sizes] * 2)
    # never seen is infinite: first 0, 1, 2, then 3, 4, 5; all reported 1
    assert owners == [[0, 1, 2], [3, 4, 5]]
    assert memories[1]["loss"].tolist() == [1.0] * 6
    seen = {"loss": torch.tensor([1.0, 6.0, 2.0, 5.0, 3.0, 4.0])}
    assert selector.choose(seen, equal_sizes.at(3).ctx)[0].owner.tolist() == [1, 3, 5]


def test_a_loss_that_is_not_finite_is_the_lowest(equal_sizes: Stage):
    stage = replace(equal_sizes, loss=np.array([np.nan, np.inf, 1, 2, 0, 0]))
    owners, _ = play(PowerOfChoice(count=3, candidates=6), [stage])
    assert owners == [[2, 3, 4]]


def test_fewer_candidates_than_places_are_refused(tiny):
    with pytest.raises(ConfigError, match=r"selector\.candidates must be at least count=3, got 2"):
        spec.build(tiny("selector=power_of_choice", "selector.candidates=2"))
