from dataclasses import replace

import numpy as np
from stages import Stage, play

from fedexp.core.client_resources import Resources
from fedexp.parts.selector.fedcs import FedCS


def machines(update: list[float], upload: list[float]) -> Resources:
    return Resources(1 / np.array(upload), np.ones(len(update)), np.array(update), 1e6)


def test_three_rounds_by_hand():
    stage = Stage(np.full(4, 10), machines=machines([4, 1, 9, 2], [2, 2, 2, 2]))
    slower = replace(stage, machines=machines([1, 1, 1, 1], [8, 2, 2, 4]))
    nobody = replace(stage, machines=machines([99, 99, 99, 99], [2, 2, 2, 2]))
    owners, memories = play(FedCS(candidates=4, round_s=12.0), [stage, slower, nobody])
    # 1 is in at 3, 3 at 5, 0 at 7, 2 waits until 9 and is in at 11: with 2 s of distribution 13 is too late
    assert owners[0] == [1, 3, 0]
    # 1 and 2 are in at 3 and 5; 3 would be at 9 and needs 4 s of distribution: 13 is too late, 0 much more so
    assert owners[1] == [1, 2]
    assert owners[2] == []
    assert memories[0]["columns"] == {"deadline_s": 12.0, "candidates": 4}


def test_only_the_asked_ones_can_take_part():
    stage = Stage(np.full(50, 10), machines=machines([1.0] * 50, [1.0] * 50))
    owners, _ = play(FedCS(candidates=5, round_s=1e6), [stage] * 3)
    assert [len(owner) for owner in owners] == [5, 5, 5]
    assert len({tuple(owner) for owner in owners}) == 3


def test_the_plan_carries_the_deadline():
    stage = Stage(np.full(4, 10), machines=machines([1.0] * 4, [1.0] * 4))
    assert FedCS(candidates=4, round_s=77.0).choose({}, stage.ctx)[0].deadline_s == 77.0
