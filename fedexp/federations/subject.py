"""The natural federation: one client a person (or device) that the data came from.

Clients are numbered in ascending order of the subject identifiers that occur in the training data; draws nothing.
"""

from dataclasses import dataclass

import numpy as np

from fedexp.data.dataset import Facts
from fedexp.federations.federation import Federation
from fedexp.federations.owners import gather
from fedexp.federations.partition import Partition
from fedexp.spec import ConfigError

_NO_SUBJECTS = (
    "federation=subject needs a dataset that knows whom each example comes from, but this one has no subjects; "
    "use dataset=har, give dataset=npz a subject array, or choose another federation"
)


def split_by_subject(subjects: np.ndarray) -> Partition:
    """One client for each distinct entry of `subjects` [S]."""
    people, owner = np.unique(subjects, return_inverse=True)
    return gather(owner, len(people))


@dataclass(frozen=True, kw_only=True)
class Subject(Federation):
    """Each person is a client."""

    def refuse(self, facts: Facts) -> None:
        if facts.subjects is None:
            raise ConfigError(_NO_SUBJECTS)

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        if subjects is None:
            raise ConfigError(_NO_SUBJECTS)
        return split_by_subject(subjects)
