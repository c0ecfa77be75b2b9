"""The natural federation: a client is a person (or device) that the data came from, or several of them.

By default each person is a client, numbered in ascending order of the subject identifiers in the training data, and
nothing is drawn. If `persons_per_client`, `clients` or `server_persons` is set, the people are shuffled and dealt: the
first `persons_per_client` of them are client 0, the next client 1, and so on. Then `server_persons` of the others give
the server its public data, and the rest is unused.

The text on clustered learning with UCI HAPT gives 10 of its 30 people to five clients and 15 to the server, so five are
left out. Here 9 of the 30 are test data; `server_persons=rest` gives the server the other 11.
"""

from typing import Annotated, Literal

import numpy as np

from fedexp.parts import ConfigError, Facts, Federation, Partition, Range, partition_by_owner

_NO_SUBJECTS = (
    "federation=subject makes clients of the people that examples come from, but this dataset does not say who they "
    "are; set dataset.client=COLUMN (table, huggingface), give the .npz file an array subject (npz), or choose another "
    "federation"
)


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
        people, person = np.unique(subjects, return_inverse=True)
        if (self.persons_per_client, self.clients, self.server_persons) == (1, None, 0):
            return partition_by_owner(person, len(people))
        clients, server = self._client_and_server_counts(len(people))
        dealt, remaining = np.split(rng.permutation(len(people)), [clients * self.persons_per_client])
        owner = np.full(len(people), clients, dtype=np.int64)  # at first without an owner
        owner[dealt] = np.repeat(np.arange(clients), self.persons_per_client)
        partition = partition_by_owner(owner[person], clients)
        return Partition(partition.offsets, partition.indices, np.flatnonzero(np.isin(person, remaining[:server])))

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
