"""The server's public data: whose it is not, and what models answer to it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation import context
from fedexp.simulation.setup import compatibility
from fedexp.simulation.setup.data_split import split_data
from fedexp.simulation.setup.experiment import Experiment

Tiny = Callable[..., dict[str, Any]]
PUBLIC = ("scenario.public_fraction=0.25",)  # 30 of 120
PEOPLE = ("federation=subject", "dataset.subjects=6", "federation.clients=3", "federation.server_persons=rest")


@pytest.mark.parametrize("words", [PUBLIC, PEOPLE, (*PUBLIC, *PEOPLE)])
def test_nobody_else_holds_what_is_public(tiny: Tiny, words: tuple[str, ...]):
    exp: Experiment = spec.build(tiny(*words, "evaluation.validation=true", "evaluation.personal_fraction=0.5"))
    share, _ = split_data(exp, exp.dataset.load(exp.data_dir, exp.seed))
    everything = [share.public, share.validation, share.partition.indices, share.held_out.indices]
    assert np.array_equal(np.sort(np.concatenate(everything)), np.arange(120))
    assert len(share.validation) == 12
    assert len(share.public) == 30 if words == PUBLIC else len(share.public) > 40
    assert (np.diff(share.public) > 0).all()


def test_without_it_the_clients_hold_what_they_always_held(tiny: Tiny):
    plain, public = world_of(tiny()), world_of(tiny(*PUBLIC))
    assert plain.public is None
    assert context.make_context(plain, 1).public.size == 0
    assert context.make_context(public, 1).public.size == 30
    assert len(plain.partition.indices) == 120
    assert len(public.partition.indices) == 90


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("scenario.public_fraction=0.001",), "must give at least one of the 120 training examples"),
        (("scenario.public_fraction=0.95", "evaluation.validation=true"), "must leave examples to the clients"),
    ],
)
def test_fractions_that_leave_somebody_nothing_are_refused(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny(*words)))


class TestOutputs:
    def test_are_the_networks_log_probabilities(self, tiny: Tiny):
        world = world_of(tiny(*PUBLIC, "model.hidden=[]", "engine.evaluation_chunk=7"))
        assert world.public is not None
        rows = torch.randn(3, world.layout.size)
        answers = context.make_context(world, 1).public.outputs(rows)
        assert answers.shape == (3, 30, 10)
        for row, answer in zip(rows, answers, strict=True):
            weight, bias = world.layout.views(row).values()
            torch.testing.assert_close(answer, F.log_softmax(world.public.x @ weight.T + bias, dim=1))

    def test_of_a_sample_are_part_of_all_and_the_same_in_every_round(self, tiny: Tiny):
        world = world_of(tiny(*PUBLIC))
        rows = torch.randn(2, world.layout.size)
        few, all_ = (
            context.make_context(world, 1).public.outputs(rows, 10),
            context.make_context(world, 1).public.outputs(rows),
        )
        assert few.shape == (2, 10, 10)
        assert torch.equal(few, context.make_context(world, 9).public.outputs(rows, 10))
        gaps = (few[0][:, None] - all_[0]).abs().amax(dim=2)  # of every answer of the sample to all answers
        assert (gaps.min(dim=1).values < 1e-5).all()

    def test_of_a_model_do_not_depend_on_the_others(self, tiny: Tiny):
        world = world_of(tiny(*PUBLIC))
        rows = torch.randn(4, world.layout.size)
        together = context.make_context(world, 1).public.outputs(rows)
        assert torch.equal(together[2:3], context.make_context(world, 1).public.outputs(rows[2:3]))
        assert not torch.equal(together[2], together[3])
