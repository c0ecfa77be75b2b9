"""What configs may ask for besides each other's values."""

import os
from typing import Any

from omegaconf import OmegaConf

from fedexp.core.cpu_cores import usable_cores


def register_resolvers() -> None:
    """What the configs may ask for.

    `${data_root:}` is the folder of the datasets, `${usable_cores:}` how many cores this process may keep busy,
    `${likely_malicious:clients,participants,malicious}` how many of a round's uniformly drawn participants
    are malicious in 99 of 100 rounds at most.
    """

    def data_root() -> str:
        from fedexp.data import store

        return os.fspath(store.data_root())

    def likely_malicious(clients: Any, participants: Any, malicious: Any) -> Any:
        counts = (clients, participants, malicious)
        if not malicious or not all(isinstance(count, int) and count >= 0 for count in counts):
            return malicious  # what is no number is refused where it was given
        from scipy.stats import hypergeom

        return int(hypergeom.ppf(0.99, clients, min(malicious, clients), min(participants, clients)))

    OmegaConf.register_new_resolver("data_root", data_root, replace=True)
    OmegaConf.register_new_resolver("usable_cores", usable_cores, replace=True)
    OmegaConf.register_new_resolver("likely_malicious", likely_malicious, replace=True)
