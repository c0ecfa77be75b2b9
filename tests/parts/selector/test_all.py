import numpy as np
import pytest
from stages import Stage, play

from fedexp.parts.selector.all import All


@pytest.mark.law("selector=all", "everybody is asked in every round")
def test_everybody_in_every_round(equal_sizes: Stage):
    owners, memories = play(All(), [equal_sizes] * 3)
    assert owners == [[0, 1, 2, 3, 4, 5]] * 3
    assert memories == [{}, {}, {}]


def test_who_has_nothing_is_asked_too():
    owners, _ = play(All(), [Stage(np.array([3, 0, 5]))])
    assert owners == [[0, 1, 2]]


def test_everybody_is_sure_to_be_asked():
    assert All().rate(1000) == 1
