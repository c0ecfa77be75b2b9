"""Half a cosine by hand and beside PyTorch's scheduler."""

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

from fedexp.parts.schedule.cosine import Cosine


@pytest.mark.law("schedule=cosine", "in the middle the rate is half way, and after the last round it stays at its end")
def test_by_hand():
    """cos of 0, 60, 90 and 120 degrees; after the last round the rate stays."""
    factors = [Cosine(rounds=6).factor(number) for number in (1, 3, 4, 5, 7, 9)]
    assert factors == pytest.approx([1, 0.75, 0.5, 0.25, 0, 0])
    assert Cosine(rounds=6, end=0.2).factor(4) == pytest.approx(0.6)


def test_it_is_pytorchs():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs = CosineAnnealingLR(optimizer, 10, eta_min=0.1)
    for number in range(1, 11):
        assert Cosine(rounds=10, end=0.1).factor(number) == pytest.approx(theirs.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        theirs.step()


def test_the_warm_up_is_part_of_the_rounds():
    assert Cosine(rounds=8, warmup=2).factor(6) == pytest.approx(0.5)
