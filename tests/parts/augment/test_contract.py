"""What every augmentation must keep, found from conf/."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from composing import options
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.augment.contract import Augment
from fedexp.simulation.build_world import build_world
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.training.workers.pool import WorkerPool

IMAGES = ("dataset.shape=[3,8,8]", "model=simple_cnn", "local.batch_size=8", "evaluation.client_losses=exact")
CHANGING = [option for option in options("augment") if option != "none"]


def last(config) -> tuple[list, torch.Tensor]:
    """Every row of the metrics and the last model."""
    exp = spec.build(config)
    world = build_world(exp, None, WorkerPool())
    with with_workers(exp, world, world.initial_state()) as world:
        lived = list(run_rounds(exp, world, world.initial_state()))
    return [row for _, row, _ in lived], lived[-1][0].models[0].flat


@pytest.mark.parametrize("option", options("augment"))
class TestAugment:
    def test_images_are_not_written_and_neighbours_do_not_matter(self, tiny: Tiny, option: str):
        part = world_of(tiny(f"augment={option}", *IMAGES)).exp.augment
        images, drawn = torch.rand(2, 5, 3, 8, 8)[0], torch.rand(5, part.draws)
        mean, std, kept = torch.zeros(1, 1, 1), torch.ones(1, 1, 1), images.clone()
        found = part.batch(images, drawn, mean, std)
        assert torch.equal(images, kept)
        assert found.shape == images.shape
        assert found.dtype == images.dtype
        torch.testing.assert_close(part.batch(images[3:], drawn[3:], mean, std), found[3:])
        assert part.batch(images[:0], drawn[:0], mean, std).shape == (0, 3, 8, 8)

    def test_a_chunk_of_clients_and_two_workers_give_the_same_bytes(self, tiny: Tiny, option: str):
        rows, model = last(tiny(f"augment={option}", *IMAGES))
        again, other = last(tiny(f"augment={option}", *IMAGES, "engine.workers=2"))
        assert torch.equal(model, other)
        assert [row["test_loss"] for row in rows] == [row["test_loss"] for row in again]


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("option", CHANGING)
@pytest.mark.parametrize("more", [(), ("model=mlp", "federation=dirichlet"), ("privacy=dp_sgd", "privacy.clip=1",
    "privacy.noise_multiplier=1", "privacy.delta=1e-3", "local.batch_size=4")])  # fmt: skip
def test_engines_agree(tiny: Tiny, option: str, more: tuple[str, ...]):
    words = (f"augment={option}", *IMAGES, *more)
    rows, model = last(tiny(*words))
    if spec.build(tiny(*words)).augment.one_by_one:
        with pytest.raises(ConfigError, match=f"augment={option} changes one image after another; use engine=loop"):
            last(tiny(*words, "engine=stacked"))
        return
    for memory in ("engine.memory_mb=2048", "engine.memory_mb=0.001"):
        _, stacked = last(tiny(*words, "engine=stacked", memory))
        torch.testing.assert_close(stacked, model, atol=1e-9, rtol=0)
    _, plain = last(tiny(*words, "augment=none"))
    assert not torch.allclose(plain, model, atol=1e-6)
    assert rows[0]["round"] == 1


def test_only_what_is_trained_on_is_changed(tiny: Tiny):
    world = world_of(tiny("augment=crop_flip", *IMAGES, "scenario.public_fraction=0.2", "evaluation.validation=true"))
    assert type(world.train.augment).__name__ == "CropFlip"
    for examples in (world.test, world.validation, world.public, world.train.subset(np.arange(3))):
        assert type(getattr(examples, "augment", None)) is Augment


def test_every_client_round_and_step_draws_its_own(tiny: Tiny):
    world = world_of(tiny("augment=crop_flip", *IMAGES))
    seen = []
    batch = type(world.exp.augment).batch

    def spied(part, images, uniform, mean, std):
        seen.append(uniform.clone())
        return batch(part, images, uniform, mean, std)

    config = tiny("augment=crop_flip", *IMAGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.exp.augment), "batch", spied)
        last(config)
    trained = [drawn for drawn in seen if len(drawn) == 8]
    assert len(trained) >= 2 * 3 * 2  # rounds, participants, steps
    assert len({drawn.numpy().tobytes() for drawn in trained}) == len(trained)
    changed: Any = replace(world.exp.augment, pad=1)
    assert changed.pad == 1
