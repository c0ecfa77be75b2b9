"""The config of one run, checked as far as possible without loading data."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from fedexp.config import trust
from fedexp.config.compose import Composer, resolve_config
from fedexp.core.errors import ConfigError
from fedexp.core.nested import walk
from fedexp.core.part import build


def validate_config(composer: Composer, config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """The plain config of one run, after every refusal that is possible without loading data.

    Raises:
        ConfigError: a key is missing or has a wrong value, parts cannot work together, or files are absent.
    """
    HydraConfig.instance().set_config(deepcopy(config))  # it freezes what it is given
    name = config.hydra.job.config_name
    with composer.explain_errors(name, overrides):
        run_config = resolve_config(config)
    for key, value in walk(run_config):
        if value == "???":
            raise ConfigError(f"{key} must be given; set {key}=...")
    from fedexp.simulation.setup import compatibility  # it brings PyTorch, which no mistyped word needs to wait for

    compatibility.refuse(build(run_config))
    trust.remember_modules(run_config)
    return run_config
