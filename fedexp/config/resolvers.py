"""What configs may ask for besides each other's values."""

import os
from typing import Any

from omegaconf import DictConfig, OmegaConf

from fedexp.core.cpu_cores import usable_cores
from fedexp.maths.unseen import unseen_count


def register_resolvers() -> None:
    """What the configs may ask for.

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
        return int(hypergeom.ppf(0.99, drawn, min(malicious, drawn), min(participants, drawn)))

    OmegaConf.register_new_resolver("data_root", data_root, replace=True)
    OmegaConf.register_new_resolver("usable_cores", usable_cores, replace=True)
    OmegaConf.register_new_resolver("likely_malicious", likely_malicious, replace=True)


def never_drawn(config: DictConfig, clients: int, malicious: int) -> int:
    """How many of the clients never train, as far as a config says so; malicious ones without data always do."""
    fraction = OmegaConf.select(config, "evaluation.unseen_fraction", default=0.0)
    if not isinstance(fraction, int | float) or not 0 <= fraction < 1:
        return 0  # refused where it was given
    hold = OmegaConf.select(config, "scenario.malicious_hold_data", default=True)
    return unseen_count(fraction, clients if hold else max(0, clients - malicious))
