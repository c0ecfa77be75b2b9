"""The OmegaConf resolvers that configs may use."""

import os
import re
from collections.abc import Sequence
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fedexp.config.override_text import override_text
from fedexp.core.nested import flatten_keys
from fedexp.files.url_credentials import ADDRESS_VARIABLE
from fedexp.maths.unseen import unseen_count
from fedexp.process.cpu_cores import usable_cores

_VARIABLE = re.compile(r"\$\{\s*oc\.env:[^${}]*\}")


def register_resolvers() -> None:
    """Registers the resolvers that configs may use.

    `${data_root:}` is the folder of the datasets, `${usable_cores:}` how many cores this process may keep busy,
    `${likely_malicious:clients,participants,malicious}` how many uploads of a round are malicious in 99 of 100 rounds
    at most, if its participants are drawn uniformly from the clients that train (`evaluation.unseen_fraction` do not).
    """

    def likely_malicious(clients: Any, participants: Any, malicious: Any, *, _root_: DictConfig) -> Any:
        counts = (clients, participants, malicious)
        if not malicious or not all(isinstance(count, int) and count >= 0 for count in counts):
            return malicious  # what is no number is refused where it was given
        from scipy.stats import hypergeom

        drawn = clients - never_drawn(_root_, clients, malicious)
        if drawn < 1:
            return malicious  # nobody would train, which is refused by itself
        return int(hypergeom.ppf(0.99, drawn, min(malicious, drawn), min(uploads_of(_root_, participants), drawn)))

    OmegaConf.register_new_resolver("data_root", _data_root, replace=True)
    OmegaConf.register_new_resolver("usable_cores", usable_cores, replace=True)
    OmegaConf.register_new_resolver("likely_malicious", likely_malicious, replace=True)


def uploads_of(config: DictConfig, participants: int) -> int:
    """How many of so many participants count in a step, where the pacing of a config says it."""
    for key in ("pacing.buffer", "pacing.uploads"):
        uploads = OmegaConf.select(config, key)
        if isinstance(uploads, int) and uploads > 0:
            return uploads if key == "pacing.buffer" else min(uploads, participants)
    return participants


def _data_root() -> str:
    from fedexp.data import store

    return os.fspath(store.data_root())


def local_values() -> dict[str, Any]:
    """What the references say on this machine that say something else on another."""
    return {"${data_root:}": _data_root(), "${usable_cores:}": usable_cores()}


def with_environment(config: DictConfig) -> DictConfig:
    """A config in which references to environment variables are replaced by values, except for MLflow's."""
    container = cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
    for key, text in flatten_keys(container).items():
        if "oc.env" in str(text) and ADDRESS_VARIABLE not in str(text):
            OmegaConf.update(config, key, OmegaConf.select(config, key))
    return config


def words_with_environment(words: Sequence[str]) -> list[str]:
    """Overrides in which references to environment variables are replaced by values, except for MLflow's."""
    return [_with_environment(word) if "oc.env" in word and ADDRESS_VARIABLE not in word else word for word in words]


def _with_environment(word: str) -> str:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    value = OverridesParser.create().parse_override(word).value()
    if not isinstance(value, str):
        return word  # a list or a choice of several: its reader must write the values

    def read(variable: re.Match[str]) -> str:
        return str(OmegaConf.create({"value": variable[0]}).value)

    return f"{word.partition('=')[0]}={override_text(_VARIABLE.sub(read, value))}"


def never_drawn(config: DictConfig, clients: int, malicious: int) -> int:
    """How many clients never train, as far as the config says; malicious ones without data always do."""
    fraction = OmegaConf.select(config, "evaluation.unseen_fraction", default=0.0)
    if not isinstance(fraction, int | float) or not 0 <= fraction < 1:
        return 0  # refused where it was given
    hold = OmegaConf.select(config, "scenario.malicious_hold_data", default=True)
    return unseen_count(fraction, clients if hold else max(0, clients - malicious))
