"""The OmegaConf resolvers that configs may use."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.resolvers import oc

from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.files.atomic import display_path
from fedexp.maths.unseen import unseen_count
from fedexp.process.cpu_cores import usable_cores

MLFLOW = "MLFLOW_TRACKING_URI"
NO_DEFAULT = object()
ASKS_FOR = "it asks for"


def register_resolvers() -> None:
    """Registers the resolvers that configs may use.

    `${data_root:}` is the folder of the datasets, `${usable_cores:}` how many cores this process may keep busy,
    `${likely_malicious:clients,participants,malicious}` how many of a round's uniformly drawn participants
    are malicious in 99 of 100 rounds at most. Clients that never train (`evaluation.unseen_fraction`) are not drawn.
    """

    def data_root() -> str:
        from fedexp.data import store

        return os.fspath(store.data_root())

    def likely_malicious(clients: Any, participants: Any, malicious: Any, *, _root_: DictConfig) -> Any:
        counts = (clients, participants, malicious)
        if not malicious or not all(isinstance(count, int) and count >= 0 for count in counts):
            return malicious  # what is no number is refused where it was given
        from scipy.stats import hypergeom

        drawn = clients - never_drawn(_root_, clients, malicious)
        if drawn < 1:
            return malicious  # nobody would train, which is refused by itself
        return int(hypergeom.ppf(0.99, drawn, min(malicious, drawn), min(participants, drawn)))

    OmegaConf.register_new_resolver("data_root", data_root, replace=True)
    OmegaConf.register_new_resolver("usable_cores", usable_cores, replace=True)
    OmegaConf.register_new_resolver("likely_malicious", likely_malicious, replace=True)


@contextmanager
def no_environment(path: Path) -> Iterator[None]:
    """Inside the block, configs may read no environment variable but the one that says where MLflow is.

    The folder of a run, a sweep or a search may be a stranger's, and what it makes of the reader's environment would
    stand in a report or in a complaint.

    Raises:
        ConfigError: what was read in the `path` asks for another.
    """

    def env(name: str, default: Any = NO_DEFAULT) -> Any:
        if name != MLFLOW:
            raise ConfigError(f"{ASKS_FOR} {name} of the environment; write the value in its place")
        return oc.env(name) if default is NO_DEFAULT else oc.env(name, default)

    OmegaConf.register_new_resolver("oc.env", env, replace=True)
    try:
        yield
    except Exception as error:  # OmegaConf wraps what its resolvers raise, and Hydra what OmegaConf raises
        _, asks, remainder = str(error).partition(ASKS_FOR)
        if not asks:
            raise
        raise ConfigError(f"{display_path(path)} cannot be read: {asks}{remainder.splitlines()[0]}") from error
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)


def with_environment(config: DictConfig) -> DictConfig:
    """A config in which references to environment variables are replaced by values, except for MLflow's."""
    container = OmegaConf.to_container(config, resolve=False)
    assert isinstance(container, dict)
    asking = [key for key, text in flatten_keys(container).items() if "oc.env" in str(text) and MLFLOW not in str(text)]
    for key in asking:
        OmegaConf.update(config, key, OmegaConf.select(config, key))
    return config


def never_drawn(config: DictConfig, clients: int, malicious: int) -> int:
    """How many clients never train, as far as the config says; malicious ones without data always do."""
    fraction = OmegaConf.select(config, "evaluation.unseen_fraction", default=0.0)
    if not isinstance(fraction, int | float) or not 0 <= fraction < 1:
        return 0  # refused where it was given
    hold = OmegaConf.select(config, "scenario.malicious_hold_data", default=True)
    return unseen_count(fraction, clients if hold else max(0, clients - malicious))
