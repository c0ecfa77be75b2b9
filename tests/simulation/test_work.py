"""Jobs are known by their client and the round in which they were begun, and by nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import Tiny, world_of

from fedexp.core.values import Jobs, Uploads, concatenate_rows
from fedexp.simulation import context
from fedexp.simulation.start import start
from fedexp.simulation.work import work
from fedexp.simulation.world import World

DRAWS = ("local.epochs=[1,3]", "model.dropout=0.3", "local.batch_size=7")
CASES = {
    "loop": DRAWS,
    "stacked": ("engine=stacked", *DRAWS),
    "rates": ("schedule=exponential", "schedule.gamma=0.5", "local=prox", "local.mu=1"),
    "variates": ("local=scaffold", "schedule=exponential", "schedule.gamma=0.5"),
    "personal": ("local=personal_layer", "local.epochs=2"),
    "noise": ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3", *DRAWS[2:]),
    "images": ("dataset.shape=[1,8,8]", "augment=crop_flip", "evaluation.client_losses=exact"),
}


def jobs_of(world: World, number: int, owner: list[int]) -> Jobs:
    """The jobs of these clients, begun in this round."""
    jobs, _, _ = start(world.exp, world, world.initial_state(), context.make_context(world, number))
    return jobs.where(np.array(owner, np.int64))


def sent_in_round(world: World, jobs: Jobs, number: int) -> Uploads:
    """What these jobs send if it is this round."""
    return work(world.exp, world, jobs, {}, context.make_context(world, number))[0]


def same_uploads(one: Uploads, other: Uploads) -> bool:
    columns = ("owner", "model", "examples", "importance", "loss_before", "loss_after", "exact", "length")
    pairs = [(getattr(one, name), getattr(other, name)) for name in columns]
    return torch.equal(one.delta, other.delta) and all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_jobs_of_several_rounds_give_what_each_gives_in_its_own(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny("selector=all", *words))
    early, late = jobs_of(world, 2, [4, 1, 5]), jobs_of(world, 3, [0, 3])
    own_rounds = concatenate_rows([sent_in_round(world, early, 2), sent_in_round(world, late, 3)])
    order = np.array([3, 0, 4, 2, 1])
    together = sent_in_round(world, concatenate_rows([early, late]).where(order), 7)
    assert together.owner.tolist() == [0, 4, 3, 5, 1]
    assert same_uploads(together, own_rounds.where(order))


def test_the_round_in_which_a_job_was_begun_changes_what_it_draws(tiny: Tiny):
    world = world_of(tiny("selector=all", "local.epochs=2"))
    jobs = jobs_of(world, 1, [0, 1, 2])
    later = replace(jobs, begun=jobs.begun + 1)
    now, then = (sent_in_round(world, each, 1).delta for each in (jobs, later))
    assert not torch.equal(now, then)
    assert torch.equal(then, sent_in_round(world, later, 5).delta)


def test_no_job_no_message(tiny: Tiny):
    world = world_of(tiny("local=scaffold"))
    sent = sent_in_round(world, jobs_of(world, 1, []), 1)
    assert len(sent.owner) == 0
    assert sent.delta.shape == (0, world.layout.size + world.layout.parameters)
