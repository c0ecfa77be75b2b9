"""What every loss must keep, found from conf/."""

from pathlib import Path

import numpy as np
import pytest
import torch
from composing import options
from own_targets import told
from worlds import Tiny, first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts import Loss
from fedexp.simulation import context
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

TARGETS = {"bce": "labels", "mse": "numbers", "mae": "numbers", "huber": "numbers", "next_token": "tokens"}
DIRICHLET_SIZES = ("local.batch_size=8", "scenario.clients=5", "scenario.participants=5")
PRIVATE = ("privacy=dp_sgd", "privacy.clip=0.5", "privacy.noise_multiplier=0.5", "privacy.delta=1e-3")


def config(tiny: Tiny, option: str, *words: str) -> dict:
    return told(tiny(*words), TARGETS.get(option, "class"), option)


def asked(tiny: Tiny, option: str) -> tuple[World, Loss, torch.Tensor, torch.Tensor]:
    """The loss, what a drawn network says of six examples, and what is right."""
    world = world_of(config(tiny, option))
    return world, world.exp.loss, world.scorer.logits(world.first, world.train.inputs(slice(0, 6))), world.train.y[:6]


@pytest.mark.parametrize("option", options("loss"))
class TestLoss:
    def test_an_example_costs_what_it_costs_alone(self, tiny: Tiny, option: str):
        _, loss, outputs, targets = asked(tiny, option)
        for ask in (loss.per_example, loss.evaluation_losses):
            alone = [ask(outputs[place : place + 1], targets[place : place + 1]) for place in range(6)]
            torch.testing.assert_close(ask(outputs, targets), torch.cat(alone))

    def test_the_fast_ways_are_the_slow_ones(self, tiny: Tiny, option: str):
        _, loss, outputs, targets = asked(tiny, option)
        torch.testing.assert_close(loss.mean(outputs, targets), loss.per_example(outputs, targets).mean())
        total = loss.total(outputs, targets)
        assert total.dtype == torch.float64
        torch.testing.assert_close(total, loss.evaluation_losses(outputs, targets).double().sum(), rtol=1e-6, atol=0)

    def test_what_is_right_costs_less_than_what_is_wrong(self, tiny: Tiny, option: str):
        _, loss, outputs, targets = asked(tiny, option)
        right = targets.float()
        if not targets.is_floating_point():
            right = torch.nn.functional.one_hot(targets.clamp(min=0), outputs.shape[-1]).float()
        assert (
            loss.per_example(8 * right if right.max() == 1 else right, targets) <= loss.per_example(-8 * right, targets)
        ).all()

    @pytest.mark.usefixtures("_double")
    @pytest.mark.parametrize("private", [(), PRIVATE], ids=["plain", "private"])
    def test_the_engines_agree(self, tiny: Tiny, option: str, private: tuple[str, ...]):
        results = []
        for engine in ("loop", "stacked"):
            world = world_of(config(tiny, option, f"engine={engine}", *DIRICHLET_SIZES, *private))
            task = first_round(world)
            out = torch.zeros(len(task.batches), world.layout.size + 2, dtype=torch.float64)
            for rows in world.trainer.groups(task, 1):
                out[rows] = world.trainer.run(task, rows)
            results.append(out)
        assert (results[0][:, :-2] != task.start).any(dim=1).all()
        torch.testing.assert_close(*results, atol=1e-9, rtol=0, equal_nan=True)

    def test_what_the_server_measures_of_many_models_is_what_it_measures_of_one(self, tiny: Tiny, option: str):
        world = world_of(config(tiny, option, "selector=greedyfed"))
        assert world.validation is not None
        rows = torch.stack([world.first.flat, 2 * world.first.flat])
        one = world.score(world.first, world.validation).loss
        ctx = context.make_context(world, 1)
        assert ctx.validation.losses(rows)[0] == pytest.approx(one, rel=1e-5)
        index = np.arange(5)
        each = world.exp.loss.evaluation_losses(
            world.scorer.logits(world.first, world.train.inputs(slice(0, 5))), world.train.y[:5]
        )
        np.testing.assert_allclose(ctx.audit.example_losses(world.first, index), each.numpy(), rtol=1e-5)

    def test_targets_of_another_kind_are_refused_before_data_is_loaded(self, tiny: Tiny, option: str, tmp_path: Path):
        for targets, use in {
            "class": "cross_entropy",
            "labels": "bce",
            "numbers": "mse",
            "tokens": "next_token",
        }.items():
            exp = spec.build(told(tiny(f"data_dir={tmp_path}"), targets, option))
            if targets == TARGETS.get(option, "class"):
                compatibility.refuse(exp)
            else:
                words = targets.replace("class", "classes")
                with pytest.raises(
                    ConfigError, match=rf"^loss={option} needs .* this one are {words}; use loss={use}$"
                ):
                    compatibility.refuse(exp)
