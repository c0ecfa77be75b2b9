"""Options that the tests lay into a config by hand make the config that Hydra makes of them."""

from itertools import zip_longest

import pytest
from composing import BUNDLES, CONF, MADE, config, options, put_together
from omegaconf import OmegaConf

GROUPS = sorted({path.parent.name for path in CONF.glob("*/*.yaml")} - BUNDLES)
# each option once, beside those of the other groups that have the same place there
TOGETHER = list(zip_longest(*([f"{group}={option}" for option in options(group)] for group in GROUPS)))


@pytest.mark.parametrize("number", range(len(TOGETHER)))
def test_by_hand_as_by_hydra(number: int):
    words = [word for word in TOGETHER[number] if word]
    ground = MADE[:1] if number % 2 else ()
    assert config(*ground, *words) == OmegaConf.to_container(put_together(*ground, *words), resolve=True)


def test_the_last_of_two_choices_counts():
    words = (MADE[0], "selector=all", "engine=loop", "selector=oort")
    assert config(*words) == OmegaConf.to_container(put_together(*words), resolve=True)


def test_what_chooses_other_options_is_left_to_hydra():
    words = (MADE[0], "algorithm=fedplus", "selector=all")
    assert config(*words) == OmegaConf.to_container(put_together(*words), resolve=True)
