"""The base of pre-aggregations that must be told how many rows may be Byzantine."""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch

from fedexp.core.values import Columns, Memory, Uploads
from fedexp.parts.byzantine import HonestMajority
from fedexp.parts.context import Context
from fedexp.parts.pre_aggregation.contract import PreAggregation


class BoundedPreAggregation(HonestMajority, PreAggregation):
    """Passes on no rows in a round in which the model is to stay unchanged."""

    idle_columns: ClassVar[Columns] = {}  # its own columns in such a round

    @abstractmethod
    def change_rows(self, delta: torch.Tensor, byzantine: int) -> tuple[torch.Tensor, Columns]:
        """Other rows `[C, D]` for `delta [C, D]`, of which at most `byzantine` are wrong, and columns to report."""
        raise NotImplementedError

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        rows = len(uploads.owner)
        byzantine, columns = self.effective_byzantine(rows, ctx.round)
        if byzantine is None:
            return uploads.where(np.zeros(rows, dtype=bool)), {"columns": columns | self.idle_columns}
        delta, rule_columns = self.change_rows(uploads.delta, byzantine)
        return replace(uploads, delta=delta), {"columns": columns | rule_columns}
