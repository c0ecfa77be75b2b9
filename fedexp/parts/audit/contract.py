"""The contract of audits: canaries planted before the first round, and how they are reported on later.

Legend: m canaries, C participants, D entries of a model.
"""

from typing import Any

import numpy as np

from fedexp.core.part import Part
from fedexp.core.values import Canaries, Columns, Memory, Uploads
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts, Split


class Audit(Part):
    """How much privacy a run really gave, measured by canaries. The base measures nothing."""

    needs_classes = False  # whether it can only work where targets are classes

    @property
    def needs_uploads(self) -> bool:
        """Whether it looks at what single clients send."""
        return False

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError, with the reason, if nothing can be planted among examples of this kind."""

    def plant(self, train: Split, clients: np.ndarray, classes: int, rng: np.random.Generator) -> Canaries:
        """Examples like those of `train` for `clients [n]`, ascending; a coin decides whether each is included."""
        nobody = np.zeros(0, np.int64)
        return Canaries(nobody, train.x[:0], train.y[:0], nobody, nobody.astype(bool))

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        """The memory after a look at the uploads of a round's participants."""
        return memory

    def empty_columns(self) -> Columns:
        """The audit's columns, empty, for a round that is not evaluated."""
        return {}

    def report(self, memory: Memory, ctx: Context) -> Columns:
        """The audit's columns of an evaluated round; `ctx` is that of the round that would follow."""
        return {}

    def verdict(self, row: Columns) -> dict[str, Any] | None:
        """The audit's entry in the run's summary, in words under `statement`, given the last line with a report."""
        return None
