"""Configs of many different choices: Hydra would take a hundred times as long to put their files together."""

import re
from copy import deepcopy
from functools import cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from fedexp.config import one_at_a_time
from fedexp.config.resolvers import register_resolvers
from tests import composing
from tests.composing import CONF, MADE

HEAVY = sorted(
    {path.parent.name for path in CONF.glob("*/*.yaml") if re.search("^(# @package|defaults:)", path.read_text(), re.M)}
)


def composed(*words: str) -> dict[str, Any]:
    """The plain config of these words; options that choose nothing else are laid in place by hand."""
    choices = [word for word in words if not composing.is_plain_value(word) and word not in MADE]
    named = [word.partition("=")[0] for word in choices]
    if (
        not {*named}.isdisjoint(HEAVY)
        or len({*named}) < len(named)
        or not all((CONF / name).is_dir() for name in named)
    ):
        return composing.config(*words)
    config = deepcopy(ground())
    for word in choices:
        group, _, option = word.partition("=")
        path = CONF / group / f"{option}.yaml"
        if not path.exists():
            return composing.config(*words)
        config[group] = OmegaConf.load(path)
    for value in OverridesParser.create().parse_overrides([word for word in words if composing.is_plain_value(word)]):
        OmegaConf.update(config, value.key_or_group, value.value(), merge=True)
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    return {str(name): value for name, value in plain.items()}


@cache
def ground() -> DictConfig:
    """What options are laid into."""
    register_resolvers()
    one_at_a_time.register()
    return composing.chosen(MADE[0])
