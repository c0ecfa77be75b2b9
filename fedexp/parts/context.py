"""The questions that a part may ask: the only way it reaches data and randomness.

`Context` has what most parts need; the small protocols of `clients_data.py` and `questions.py` behind it have the rest.

Legend: n clients asked for, N clients.
"""

from typing import Protocol

import numpy as np

from fedexp.core.values import Layout, Plan, Weights
from fedexp.parts.clients_data import ClientsData
from fedexp.parts.questions import AuditView, FleetView, PublicData, Traffic, Validation


class Context(Protocol):
    """One round as a part sees it."""

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        ...

    @property
    def models(self) -> tuple[Weights, ...]:
        """The models that the round began with."""
        ...

    @property
    def first(self) -> Weights:
        """The initial model, before the first round."""
        ...

    @property
    def layout(self) -> Layout:
        """The layout of the clients' network. The global models' may have other widths by now."""
        ...

    @property
    def clients(self) -> int:
        """Number of clients N."""
        ...

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of every client, int64 [N]."""
        ...

    def rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of (seed, round, name)."""
        ...

    def run_rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of (seed, name): the same draws in every round."""
        ...

    def plan(self, owner: np.ndarray) -> Plan:
        """The clients `owner [n]`, each on its own data; the server on its public data."""
        ...

    def malicious(self, owner: np.ndarray) -> np.ndarray:
        """Which of the clients `owner [n]` are malicious, bool [n]."""
        ...

    def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
        """Mean of loss**power of the received global model on each client's own data, [n]; NaN without data.

        In `observe` that is, for those who took part, the model that each was sent, whatever round that was in.
        """
        ...

    @property
    def clients_data(self) -> ClientsData:
        """Questions about clients' data, besides training."""
        ...

    @property
    def fleet(self) -> FleetView:
        """The clients' machines, links and work."""
        ...

    @property
    def traffic(self) -> Traffic:
        """How large the messages of a round are."""
        ...

    @property
    def validation(self) -> Validation:
        """The server's validation data."""
        ...

    @property
    def public(self) -> PublicData:
        """The server's public data, which no client holds."""
        ...

    @property
    def audit(self) -> AuditView:
        """What an audit of the privacy works with."""
        ...
