"""A rule with a choice of optimizers makes the steps of the rules of these names."""

import pytest
import torch
from worlds import Tiny, world_of

from fedexp.core.errors import ConfigError
from fedexp.parts.local.prox import Prox
from fedexp.simulation.round import run_round

SAME = {
    "sgd": ("momentum=0.9", "nesterov=true", "weight_decay=0.1"),
    "adam": ("lr=0.01", "beta1=0.8", "weight_decay=0.1"),
    "adamw": ("lr=0.01", "beta2=0.9", "weight_decay=0.1"),
}


@pytest.mark.law("local=prox", "mu = 0 is the local rule of its optimizer (sgd, adam or adamw), to the byte")
@pytest.mark.parametrize("optimizer", SAME)
def test_without_a_pull_it_is_the_rule_of_that_name(tiny: Tiny, optimizer: str):
    keys = [f"local.{word}" for word in SAME[optimizer]]
    rules = ((f"local={optimizer}",), ("local=prox", f"local.optimizer={optimizer}", "local.mu=0"))
    worlds = [world_of(tiny(*words, *keys)) for words in rules]
    one, other = (run_round(world.exp, world, world.initial_state())[0].models[0].flat for world in worlds)
    assert torch.equal(one, other)


def test_momentum_is_not_adams():
    with pytest.raises(ConfigError, match=r"Prox\.momentum must be 0 with optimizer=adamw, which has beta1, got 0\.9"):
        Prox(optimizer="adamw", momentum=0.9)
