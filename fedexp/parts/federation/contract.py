"""The contract of federations: labels and subjects of S examples in, a partition over N clients out."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from fedexp.core.part import Part
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.partition import Partition


class Federation(Part):
    """Which client holds which training example. Pure: the same labels and stream give the same partition."""

    needs_classes = False  # whether it divides by class, so that targets must be classes
    shifts_features = False  # whether clients see their examples changed, see `shift_features`
    by_subject = False  # whether `split` looks at `subjects`; where not, a run warns that naming them has no effect

    @property
    def feeds_server(self) -> bool:
        """Whether the server itself gets examples: its public data."""
        return False

    def known_clients(self) -> int | None:
        """Number of clients N; None where only the data knows."""
        return getattr(self, "clients", None)

    @property
    def resizable(self) -> bool:
        """Whether the number of clients is a setting."""
        return type(getattr(self, "clients", None)) is int

    def without(self, clients: int) -> "Federation":
        """A copy of the federation with this many clients fewer."""
        return replace(cast(Any, self), clients=cast(Any, self).clients - clients) if clients else self

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError when this federation cannot be made from such a dataset (before it is loaded)."""

    def resolve_subjects(self, subjects: np.ndarray | None) -> np.ndarray | None:
        """The `subjects [S]` that `split` gets: those of the dataset, unless the federation has its own list."""
        return subjects

    def subject_names(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The names of the numbers that `resolve_subjects` gives; `names` are the dataset's. None: no people."""
        return names if self.by_subject else None

    @abstractmethod
    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        """Divides the S training examples; `labels` int64 [S], `subjects` int64 [S] or None."""
        raise NotImplementedError

    def shift_features(
        self, x: torch.Tensor, client: int, clients: int, scale: float, rng: np.random.Generator
    ) -> torch.Tensor:
        """The examples `x [n, *shape]` of client number `client` of `clients` after its feature shift, in their shape.

        `scale` is that of the dataset: a value is a stored number divided by it.
        """
        return x

    def groups(self, clients: int) -> np.ndarray | None:
        """The group number `[N]` of each client, where clients of one group have alike data; None without groups."""
        return None
