"""The steps that a GPU reads from one tensor are those of the host, in turn."""

from typing import Any, cast

import numpy as np
import torch

from fedexp.training.stacked.step_schedule import StepArrays, StepSchedule, pack_steps, steps_on_host

STEPS, ROWS, BATCH = 5, 3, 4


class OnHost:
    """Examples of which only the place matters."""

    x = torch.zeros(1)


def test_turns_follow_each_other():
    rng = np.random.default_rng(0)
    mask = rng.random((STEPS, ROWS, BATCH)) < 0.6
    taking = rng.random((STEPS, ROWS)) < 0.7
    due, early = ((rng.random((STEPS, ROWS, 1)) < 0.3).astype(np.float32) for _ in range(2))
    arrays = StepArrays(rng.integers(0, 2**31 - 1, mask.shape), mask, taking, due, early)
    host, agenda = steps_on_host(arrays), StepSchedule(8, ROWS, BATCH, 2, cast(Any, OnHost()))
    for _ in range(2):  # a round begins at the first step again
        agenda.load(torch.from_numpy(pack_steps(arrays, 6)))
        for first in (0, 2, 4):
            turns = agenda.next_steps()
            agenda.advance()
            for step in range(2):
                if first + step == STEPS:  # idle: nobody sees anything, moves, or is pulled
                    assert not any(each.any() for each in turns.at(step)[:5])
                    continue
                mine, wanted = turns.at(step), host.at(first + step)
                for name in ("examples", "active", "pull_mask", "first_phase", "steps_before", "steps_after"):
                    assert torch.equal(getattr(mine, name).double(), getattr(wanted, name).double()), name
                assert torch.equal(mine.share > 0, wanted.share)
                there = wanted.share.any(dim=1)
                torch.testing.assert_close(mine.share.sum(dim=1), there.float())


def test_three_examples_count_a_third_each_by_hand():
    mask = np.array([[[True, True, True, False]]])
    flags = np.zeros((1, 1, 1), np.float32), np.ones((1, 1, 1), np.float32)
    found = pack_steps(StepArrays(mask * 7, mask, np.ones((1, 1), bool), *flags), 1)
    assert found[0, 0, :4].tolist() == [7, 7, 7, 0]
    np.testing.assert_allclose(found[0, 0, 4:].view(np.float32), [1 / 3, 1 / 3, 1 / 3, 0, 1, 0, 1])
