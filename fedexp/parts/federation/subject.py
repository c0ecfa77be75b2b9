"""The natural federation: a client is a person (or device) that the data came from, or several of them.

By default each person is a client, numbered in ascending order of the subject identifiers in the training data, and
nothing is drawn. If `persons_per_client`, `clients` or `server_persons` is set, the people are shuffled and dealt: the
first `persons_per_client` of them are client 0, the next client 1, and so on. Then `server_persons` of the others give
the server its public data, and the rest is unused.

The text on clustered learning with UCI HAPT gives 10 of its 30 people to five clients and 15 to the server, so five are
left out; `server_persons=rest` gives the server all 20.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.contract import Federation
from fedexp.parts.federation.owners import partition_by_owner
from fedexp.parts.federation.partition import Partition

_NO_SUBJECTS = (
    "federation=subject makes clients of the people that examples come from, but this dataset does not say who they "
    "are; set dataset.client=COLUMN (table, huggingface), give the .npz file an array subject (npz), or choose another "
    "federation"
)


def split_by_subject(subjects: np.ndarray) -> Partition:
    """One client for each distinct entry of `subjects` [S]."""
    people, owner = np.unique(subjects, return_inverse=True)
    return partition_by_owner(owner, len(people))


def deal_people(
    subjects: np.ndarray, clients: int, persons_per_client: int, server: int, rng: np.random.Generator
) -> Partition:
    """Shuffles the people of `subjects [S]`; each client gets `persons_per_client`, then the server gets `server`."""
    people, person = np.unique(subjects, return_inverse=True)
    owner = np.full(len(people), clients, dtype=np.int64)  # at first without an owner
    order = rng.permutation(len(people))
    owner[order[: clients * persons_per_client]] = np.repeat(np.arange(clients), persons_per_client)
    is_public = np.isin(person, order[clients * persons_per_client :][:server])
    dealt = partition_by_owner(owner[person], clients)
    return Partition(dealt.offsets, dealt.indices, np.flatnonzero(is_public))


@dataclass(frozen=True, kw_only=True)
class Subject(Federation):
    """Each person is a client, or several are; some may be the server's."""

    by_subject = True

    persons_per_client: Annotated[int, Range(1)] = 1
    clients: Annotated[int, Range(1)] | None = None
    server_persons: Annotated[int, Range(0)] | Literal["rest"] = 0

    def check(self) -> None:
        if self.server_persons == "rest" and self.clients is None:
            raise ConfigError(
                "Subject.clients must be given where server_persons=rest, which takes those that clients leave, got "
                "null; set federation.clients"
            )

    @property
    def feeds_server(self) -> bool:
        return self.server_persons != 0

    def refuse(self, facts: Facts) -> None:
        if facts.subjects is None:
            raise ConfigError(_NO_SUBJECTS)
        self._client_and_server_counts(facts.subjects)

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        if subjects is None:
            raise ConfigError(_NO_SUBJECTS)
        if (self.persons_per_client, self.clients, self.server_persons) == (1, None, 0):
            return split_by_subject(subjects)
        clients, server = self._client_and_server_counts(len(np.unique(subjects)))
        return deal_people(subjects, clients, self.persons_per_client, server, rng)

    def _client_and_server_counts(self, people: int) -> tuple[int, int]:
        """Number of clients and of the server's people among this many people; ConfigError if there are too few."""
        min_server = 1 if self.server_persons == "rest" else self.server_persons
        clients = self.clients or max(1, (people - min_server) // self.persons_per_client)
        client_people = clients * self.persons_per_client
        if client_people + min_server > people:
            raise ConfigError(
                f"federation=subject needs {client_people + min_server} people for {clients} client(s) with "
                f"persons_per_client={self.persons_per_client} and server_persons={self.server_persons}, but the "
                f"training data has {people}; lower federation.clients, persons_per_client or server_persons"
            )
        return clients, people - client_people if self.server_persons == "rest" else min_server
