from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from stages import Stage, play

from fedexp.core.client_resources import Resources
from fedexp.parts.selector.oort import Oort, exploit, utilities


def test_utilities_by_hand():
    # capped at the largest, plus sqrt(0.1 ln R / L) with ln R = 10; the second is twice too slow: a quarter remains
    value = utilities(np.array([3.0, 8.0]), np.array([1, 4]), round(np.exp(10)), np.array([1.0, 0.25]), 1.0)
    assert value == pytest.approx([3 + 1.0, (8 + 0.5) / 4], abs=1e-4)
    assert utilities(np.array([0.0, 10.0]), np.array([1, 1]), 1, np.ones(2), 0.5) == pytest.approx([0.0, 5.0])


@pytest.mark.law("selector=oort", "those above the cut-off are drawn in proportion to their utility")
def test_exploits_those_near_the_last_place_in_proportion_to_utility():
    # the second place has 4; 0.9 * 4 = 3.6 leaves out 3; of 6, 4 and 4 two are drawn
    seen = np.zeros(4)
    for seed in range(4000):
        seen[exploit(np.array([6.0, 4.0, 4.0, 3.0]), 2, 0.9, np.random.default_rng(seed))] += 1
    first = 6 / 14 + 2 * (4 / 14) * (6 / 10)
    assert seen / 4000 == pytest.approx([first, (2 - first) / 2, (2 - first) / 2, 0.0], abs=0.03)
    assert exploit(np.array([1.0, 2.0]), 5, 0.9, np.random.default_rng(0)).tolist() == [0, 1]
    assert exploit(np.zeros(0), 0, 0.9, np.random.default_rng(0)).tolist() == []


def test_three_rounds_by_hand():
    losses = np.array([1.0, 2.0, 3.0, 4.0])
    stage = Stage(np.array([4, 9, 16, 25]), loss=losses)
    selector = Oort(count=2, exploration=0.5, exploration_decay=1.0, exploration_least=0.5, cutoff=1.0, cap=1.0)
    owners, memories = play(selector, [stage] * 3)
    # round 1: nobody is known, both places explore. Round 2: one place explores, the other goes to the better known one
    first, second = set(owners[0]), set(owners[1])
    known = max(first, key=lambda client: stage.sizes[client] * losses[client])
    assert known in second
    assert len(second - first) == 1
    # utilities are n * sqrt(mean squared loss) = n * loss
    seen = np.array(sorted(first | second))
    assert memories[1]["statistical"].numpy()[seen] == pytest.approx(stage.sizes[seen] * losses[seen])
    assert memories[1]["last"].numpy()[owners[1]].tolist() == [2, 2]
    # round 3: the last unknown one, and the best of the known
    assert set(range(4)) - first - second <= set(owners[2])


@pytest.mark.law("selector=oort", "alpha = 0: speed does not count")
def test_a_slow_client_is_passed_over():
    machines = Resources(np.full(3, 1.0), np.ones(3), np.array([1.0, 1.0, 9.0]), 1e6)  # rounds of 2, 2 and 10 s
    stage = Stage(np.full(3, 10), loss=np.array([1.0, 2.0, 2.5]), machines=machines, simulates=True)
    memory = {
        "statistical": torch.tensor([10.0, 20.0, 25.0]),
        "last": torch.ones(3, dtype=torch.int64),
        "duration": torch.tensor([2.0, 2.0, 10.0]),
        "history": (),
        "preferred": 0.5,
    }
    settings: dict[str, Any] = {"exploration": 0.0, "exploration_least": 0.0, "cap": 1.0, "cutoff": 1.0}
    # the preferred duration is the median, 2 s: client 2 keeps (2 / 10) squared of its 25
    assert Oort(count=1, **settings).choose(memory, stage.at(2).ctx)[0].owner.tolist() == [1]
    assert Oort(count=1, alpha=0.0, **settings).choose(memory, stage.at(2).ctx)[0].owner.tolist() == [2]


def test_the_pacer_prefers_longer_durations_when_utility_falls(equal_sizes: Stage):
    falling = [replace(equal_sizes, loss=np.full(6, loss)) for loss in (4.0, 4.0, 1.0, 1.0)]
    _, memories = play(Oort(count=6, window=2, preferred=0.3, pacer_step=0.1), falling)
    assert [memory["preferred"] for memory in memories] == pytest.approx([0.3, 0.3, 0.3, 0.4])
    rising = falling[::-1]
    _, memories = play(Oort(count=6, window=2, preferred=0.3, pacer_step=0.1), rising)
    assert memories[-1]["preferred"] == 0.3
    assert len(memories[-1]["history"]) <= 4


@pytest.mark.law("selector=oort", "the share of new clients falls to exploration_least and no further")
def test_exploration_decays_to_its_least():
    stage = Stage(np.full(100, 5), loss=np.arange(100.0))
    owners, _ = play(Oort(count=10, exploration=1.0, exploration_decay=0.5, exploration_least=0.2), [stage] * 5)
    seen: set[int] = set()
    fresh = []
    for owner in owners:
        fresh.append(len(set(owner) - seen))
        seen |= set(owner)
    assert fresh == [10, 5, 3, 2, 2]  # shares 1, .5, .25, .2, .2 of ten places


def test_losses_that_are_not_finite_leave_a_client_without_utility(equal_sizes: Stage):
    stage = replace(equal_sizes, loss=np.full(6, np.nan))
    owners, memories = play(Oort(count=3), [stage] * 4)
    assert all(len(owner) == 3 for owner in owners)
    assert memories[-1]["statistical"].tolist() == [0.0] * 6
