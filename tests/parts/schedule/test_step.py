"""Decay in steps by hand and beside PyTorch's schedulers."""

import pytest
import torch
from torch.optim.lr_scheduler import MultiStepLR, StepLR

from fedexp.core.errors import ConfigError
from fedexp.parts.schedule.step import Step


@pytest.mark.law("schedule=step", "the rate is multiplied by gamma after every `every` rounds and stays between")
def test_by_hand():
    regular, listed = Step(every=2, gamma=0.5), Step(every=(1, 4), gamma=0.5)
    assert [regular.factor(number) for number in range(1, 8)] == [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125]
    assert [listed.factor(number) for number in range(1, 8)] == [1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]


@pytest.mark.parametrize("every", [3, (2, 7)])
def test_it_is_pytorchs(every: int | tuple[int, ...]):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs = StepLR(optimizer, every, 0.1) if isinstance(every, int) else MultiStepLR(optimizer, every, 0.1)
    for number in range(1, 12):
        assert Step(every=every).factor(number) == pytest.approx(theirs.get_last_lr()[0], rel=1e-12)
        optimizer.step()
        theirs.step()


def test_no_round_to_drop_after_is_refused():
    with pytest.raises(ConfigError, match=r"Step\.every must name a round, got \[\]"):
        Step(every=())
