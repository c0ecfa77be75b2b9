"""Configs and experiments of overrides, and the options that there are: what tests compose."""

import pickle
import re
from collections.abc import Sequence
from functools import cache
from itertools import takewhile
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedexp.config import catalog, one_at_a_time
from fedexp.config.location import conf_dir
from fedexp.config.resolvers import register_resolvers
from fedexp.core import part as spec
from fedexp.simulation.setup.experiment import Experiment

CONF = conf_dir()
MADE = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60")
BUNDLES = {
    path.parent.name
    for path in CONF.glob("*/*.yaml")
    if re.search("^(# @package|  - override)", path.read_text(), re.M)
}  # groups whose options choose others
INNER = {path for path in CONF.glob("*/*.yaml") if re.search("^  - /.*@", path.read_text(), re.M)}  # parts inside them
TINY = (
    "scenario.clients=6",
    "scenario.participants=3",
    "rounds=2",
    "engine=loop",
    "engine.workers=1",
    "pictures=false",
)
USUAL = (*MADE[1:], *TINY)


def options(group: str) -> list[str]:
    """The options of a group, found from conf/: dropping in a YAML file enrols a part."""
    return catalog.options(CONF, group)


def config(*overrides: str) -> dict[str, Any]:
    """The composed plain config of these overrides."""
    register_resolvers()
    one_at_a_time.register()
    values = [word for word in overrides if is_plain_value(word)]
    usual = tuple(takewhile(USUAL.__contains__, values))
    try:
        composed = pickle.loads(chosen(tuple(word for word in overrides if word not in values), usual))
        lay(composed, values[len(usual) :])
    except OmegaConfBaseException:  # told as Hydra tells it
        composed = put_together(*overrides)
    plain = OmegaConf.to_container(composed, resolve=True)
    assert isinstance(plain, dict)
    return {str(name): value for name, value in plain.items()}


def tiny(*overrides: str) -> dict[str, Any]:
    """The config of a run that takes a fraction of a second, on made data unless a dataset is named."""
    made = () if any(word.startswith("dataset=") for word in overrides) else MADE
    return config(*made, *TINY, *overrides)


@cache
def chosen(choices: tuple[str, ...] = (), values: tuple[str, ...] = ()) -> bytes:
    """What Hydra composes of these choices, pickled, with these values; most choices can be laid into it by hand."""
    if values:
        composed = pickle.loads(chosen(choices))
        lay(composed, values)
        return pickle.dumps(composed)
    laid = {word.partition("=")[0]: CONF / f"{word.replace('=', '/')}.yaml" for word in choices if word != MADE[0]}
    bundles, paths = BUNDLES.intersection(laid), set(laid.values())
    if not laid or bundles or paths & INNER or not all(path.is_file() for path in paths):
        return pickle.dumps(put_together(*choices))
    composed = pickle.loads(chosen(MADE[:1] if MADE[0] in choices else ()))
    for group, path in laid.items():
        composed[group] = OmegaConf.load(path)
    return pickle.dumps(composed)


def lay(composed: DictConfig, values: Sequence[str]) -> None:
    """Sets keys that are there."""
    for value in OverridesParser.create().parse_overrides(list(values)):
        OmegaConf.update(composed, value.key_or_group, value.value(), merge=True)


def put_together(*overrides: str) -> DictConfig:
    """What Hydra composes."""
    with initialize_config_dir(config_dir=str(CONF), version_base="1.3"):
        return compose("config", overrides=list(overrides))


@cache
def is_plain_value(override: str) -> bool:
    """Whether an override sets a key that is there, and chooses no file."""
    key = override.partition("=")[0]
    return not ({*"+~@/"} & set(key) or key.startswith("hydra.") or (CONF / key).is_dir())


def experiment(*overrides: str) -> Experiment:
    """The experiment of these overrides."""
    return spec.build(config(*overrides))
